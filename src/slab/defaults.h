// defaults.h -- defaults that fit the machine and the process's control group.
//
// Layer     slab
// Threads   the holder of the arena's lock.
#ifndef HAK_SLAB_DEFAULTS_H
#define HAK_SLAB_DEFAULTS_H

#include "slab/arena.h"

// Before the heap grows beyond its first superslab: until then, nothing that waits in it can be too
// much, and most processes end without it. Reads the limits the first time, and never again.
HAK_INTERNAL void hak_defaults_fit_locked(void) HAK_REQUIRES(&hak_arena.lock);

#endif
