// unwatch.h -- which caches cease to be watched: nothing is left in them to give.
//
// Layer     cache
// Threads   who passes over the caches (sweep.h).
#ifndef HAK_CACHE_UNWATCH_H
#define HAK_CACHE_UNWATCH_H

#include "cache/cache.h"
#include "owner/watch.h"

// The cache, which is in no list and has nothing left to give, is no longer watched. False: it has to be.
HAK_INTERNAL bool hak_unwatch(struct hak_cache *cache)
    HAK_REQUIRES(&hak_watch.lock, &cache->owner.lock);
// Watch those of them again to which something has come meanwhile. Several together, as it takes a barrier.
HAK_INTERNAL void hak_unwatch_judge(struct hak_cache **caches, unsigned count);

#endif
