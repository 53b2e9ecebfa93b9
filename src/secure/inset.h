// inset.h -- a large block between addresses that nobody can touch.
//
// Owns      the number of these blocks.
// Threads   any; each takes the arena's lock.
// Fails     NULL or false when the kernel refuses; an existing block stays as it was.
//
// The block has a mapping of its own (slab/mapping.h) and is inset: it begins a unit after its start. (Small blocks: guard.h.)
#pragma once

#include "slab/arena.h"

// Read how many mappings a process may have. Once, before the program's main.
HAK_INTERNAL void hak_inset_start(void);
