// defaults.h -- defaults that fit the machine and the process's control group; and how an option is set.
//
// Threads   the holder of the arena's lock, as for everything that sets options.
#pragma once

#include "base/options.h"
#include "slab/arena.h"

// Called before the program's main, once the options are known, or before the heap grows beyond its first superslab, if
// that comes first. Reads the limits only the first time: later the program may be in a sandbox.
HAK_INTERNAL void hak_defaults_fit(void);
HAK_INTERNAL void hak_defaults_fit_locked(void) HAK_REQUIRES(&hak_arena.lock);

// hak_option_choose, with that lock held: so of two concurrent calls the one with the stronger source wins.
HAK_INTERNAL bool hak_defaults_choose(_Atomic(uint64_t) *option,
                                      uint64_t value,
                                      enum hak_option_source source);
