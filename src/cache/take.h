// take.h -- blocks out of the slabs of a cache's owner; and where it gets slabs from: ended threads, other owners, the arena.
//
// Threads   any that holds the cache's lock.
// Fails     NULL, or fewer, without memory.
#pragma once

#include "cache/cache.h"

// Take up to `count` blocks from the slabs that have some; a new slab only when none has. Returns how many.
HAK_INTERNAL unsigned hak_take_many(struct hak_cache *cache,
                                    unsigned size_class,
                                    void **blocks,
                                    unsigned count) HAK_REQUIRES(&cache->owner.lock);
// Take one block from the slabs of `cache`, past its magazine. Any thread with the lock.
HAK_INTERNAL void *hak_take_one(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Has the cache a slab with blocks of the class to give, or does it get one of ended threads? Takes the lock.
HAK_INTERNAL bool hak_take_has_slab(struct hak_cache *cache, unsigned size_class);
// As hak_take_one, but never handed out before: NULL when there is none. `zeroed`: its pages are untouched.
HAK_INTERNAL void *hak_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed);
