// defaults.h -- defaults that fit the machine and the process's control group; and how an option is set.
//
// Threads   the holder of the arena's lock: it is that of all who set options.
#pragma once

#include "base/options.h"
#include "slab/arena.h"

// Before the program's main, when the options are known; or before the heap grows beyond its first superslab, if that comes
// first. Reads the limits the first time, and never again: the program may be in a sandbox by then.
HAK_INTERNAL void hak_defaults_fit(void);
HAK_INTERNAL void hak_defaults_fit_locked(void) HAK_REQUIRES(&hak_arena.lock);

// hak_option_choose, with that lock: who overrules another does so whatever both do at the same time.
HAK_INTERNAL void hak_defaults_choose(_Atomic(uint64_t) *option,
                                      uint64_t value,
                                      enum hak_option_source source);
