// blocks.h -- blocks of hardened slabs: remote free, realloc, usable size, and the check when the program ends.
//
// Layer     secure
// Threads   any; the caller holds no cache's lock, unless the comment says so.
#pragma once

#include "cache/cache.h"
#include "cache/hooks.h"

// Check the blocks of all caches when the program ends, and die if one is damaged.
HAK_INTERNAL void hak_blocks_check_all(void);
