// blocks.h -- what the program does with the blocks of hardened slabs, beyond malloc and free of its own thread.
//
// Layer     secure
// Threads   any; no cache's lock is held but where it says so.
#pragma once

#include "cache/cache.h"
#include "cache/hooks.h"

// At the end of the program: die if a block of any cache is not as it has to be.
HAK_INTERNAL void hak_blocks_check_all(void);
