// refill.h -- refilling an empty magazine.
//
// Threads   the cache's own thread, or the holder of a heap's lock.
// Fails     NULL without memory.
#pragma once

#include "cache/cache.h"

// Fill the empty magazine of a class and take one block from it. NULL without memory.
HAK_INTERNAL void *hak_refill(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);

// Open parcels, and put their blocks into magazines, until the magazine of the class has `blocks`.
HAK_INTERNAL void hak_refill_by_parcels(struct hak_cache *cache,
                                        unsigned size_class,
                                        uint32_t blocks) HAK_REQUIRES(&cache->owner.lock);
