// direct.h -- blocks of caches that keep no magazines: every call is seen.
//
// Layer     cache
// Threads   any.
//
// For option check and the injector, where a block goes to its slab at once; and for what hardens the heap by
// looking at each block, where it goes by the cache's stock and quarantine (hardened.h).
#ifndef HAK_CACHE_DIRECT_H
#define HAK_CACHE_DIRECT_H

#include "cache/cache.h"

// A block of the class for a request. With the lock; NULL without memory.
HAK_INTERNAL void *hak_direct_take(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock);
// Put a block straight into its slab, or into the quarantine of `cache`, the thread's own. No cache locked.
HAK_INTERNAL void hak_direct_put(struct hak_cache *cache, void *block);

// What the program may use of a block of `block_bytes`.
HAK_INTERNAL size_t hak_direct_usable(const void *block, size_t block_bytes);
// Make it one of `bytes`. False when it has to be copied. No cache locked.
HAK_INTERNAL bool hak_direct_resize(void *block, size_t bytes);

// Take no more blocks from slabs that are not hardened. With the lock.
HAK_INTERNAL void hak_direct_retire_slabs(struct hak_cache *cache);
// At the end of the program: die if a block of any cache is not as it has to be.
HAK_INTERNAL void hak_direct_check_all(void);

#endif
