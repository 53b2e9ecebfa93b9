// take.h -- blocks out of the slabs of a cache's owner; and where it gets slabs from: ended threads, other owners, the arena.
//
// Layer     cache
// Threads   any that holds the cache's lock.
// Fails     NULL, or fewer, without memory.
#ifndef HAK_CACHE_TAKE_H
#define HAK_CACHE_TAKE_H

#include "cache/cache.h"

// Take up to `count` blocks from the slabs that have some; a new slab only when none has. Returns how many.
HAK_INTERNAL unsigned hak_take_many(struct hak_cache *cache,
                                    unsigned size_class,
                                    void **blocks,
                                    unsigned count) HAK_REQUIRES(&cache->owner.lock);
// Take one block from the slabs of `cache`, past its magazine. Any thread with the lock.
HAK_INTERNAL void *hak_take_one(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// As above, but never handed out before: NULL when there is none. `zeroed`: its pages are untouched.
HAK_INTERNAL void *hak_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed);

#endif
