// experiment.h -- option ab: two values of an option on trial in this process.
//
// Threads   hak_experiment_start: once, before the program's main. The rest runs in the sweeper's thread.
//
// The cost of a cache (options ace, magazine_bytes) is the time of its refills and spills, the page faults of its
// thread, and the memory that its grown magazines may hold. The cost of a superslab (decay_ms) is the page faults of
// units that are used again after a purge, and the free memory that waits in it. score.h has the weights. The value
// that costs significantly less (trial.h) is set with the learner's source, which any setting by the user overrides,
// and the decision is written into the log (decisions.h).
#pragma once

#include "base/compiler.h"

// Start the trial that option ab asks for. If the option is wrong, print one line on stderr and try nothing.
HAK_INTERNAL void hak_experiment_start(void);
