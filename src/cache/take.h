// take.h -- taking blocks out of slabs; and getting slabs: orphans, slabs of other owners, new ones from the arena.
//
// Threads   any that holds the cache's lock, unless it says otherwise.
// Fails     NULL, or fewer, without memory.
#pragma once

#include "cache/cache.h"

// Take up to `count` blocks from the cache's slabs; gets a slab from elsewhere only if none has blocks. Returns how many.
HAK_INTERNAL unsigned hak_take_many(struct hak_cache *cache,
                                    unsigned size_class,
                                    void **blocks,
                                    unsigned count) HAK_REQUIRES(&cache->owner.lock);
// Take one block from the slabs of `cache`, not from its magazine. Any thread with the lock.
HAK_INTERNAL void *hak_take_one(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Has the cache a slab of the class with blocks to give, or does it get an orphan? Takes the lock.
HAK_INTERNAL bool hak_take_has_slab(struct hak_cache *cache, unsigned size_class);
// As hak_take_one, but a block that was never handed out before; NULL when there is none. `zeroed`: its pages are untouched.
HAK_INTERNAL void *hak_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed);
