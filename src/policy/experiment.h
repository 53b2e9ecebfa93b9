// experiment.h -- option ab: two values of an option on trial in this process.
//
// Layer     policy
// Threads   hak_experiment_start: once, before the program's main. The rest runs in the sweeper's thread.
//
// Caches (ace, magazine_bytes) cost the time of their refills and spills, the page faults of their threads, and the
// memory that their grown magazines may hold; superslabs (decay_ms) the page faults that their units take which
// are used again after they were given back, and the memory that waits in them: by the weights of score.h.
// The value that costs less beyond chance (trial.h) is set with the learner's source, which whatever the user says
// overrules, and the decision written into the log (decisions.h).
#pragma once

#include "base/compiler.h"

// If option ab says so. What is wrong with it is said in one line on stderr, and nothing tried.
HAK_INTERNAL void hak_experiment_start(void);
