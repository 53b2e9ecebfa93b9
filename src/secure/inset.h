// inset.h -- a large block between addresses that nobody can touch.
//
// Layer     secure
// Owns      how many there are.
// Threads   any; each takes the arena's lock.
// Fails     NULL or false when the kernel refuses; what was there before is still there.
//
// It lies in a mapping of its own (slab/mapping.h) and is inset: it begins a unit behind the start. (guard.h has small blocks.)
#pragma once

#include "slab/arena.h"

// Read how many there may be. Once, before the program's main.
HAK_INTERNAL void hak_inset_start(void);
