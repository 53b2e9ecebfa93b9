// defaults.h -- defaults that fit the machine and the process's control group.
//
// Layer     slab
// Threads   the holder of the arena's lock.
#ifndef HAK_SLAB_DEFAULTS_H
#define HAK_SLAB_DEFAULTS_H

#include "slab/arena.h"

// Before the program's main, when the options are known; or before the heap grows beyond its first superslab, if that comes
// first. Reads the limits the first time, and never again: the program may be in a sandbox by then.
HAK_INTERNAL void hak_defaults_fit(void);
HAK_INTERNAL void hak_defaults_fit_locked(void) HAK_REQUIRES(&hak_arena.lock);

#endif
