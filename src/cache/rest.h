// rest.h -- caches that nobody has to look after: nothing is left in them to give.
//
// Layer     cache
// Threads   who passes over the caches (sweep.h).
#ifndef HAK_CACHE_REST_H
#define HAK_CACHE_REST_H

#include "cache/watch.h"

// A cache that is in no list: nothing is left to give. It is watched no more from now on, unless hak_rest_judge finds that
// something has come meanwhile. False when it has to be watched all the same.
HAK_INTERNAL bool hak_rest_lie_down(struct hak_cache *cache)
    HAK_REQUIRES(&hak_watch.lock, &cache->lock);
// Judge those that have just lain down, together, as it takes a barrier.
HAK_INTERNAL void hak_rest_judge(struct hak_cache **lying, unsigned count);

#endif
