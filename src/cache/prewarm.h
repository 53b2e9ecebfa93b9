// prewarm.h -- the first allocation of each class without a stall (option prewarm_tls).
//
// Threads   the cache's own.
// Fails     without memory fewer magazines are filled.
#pragma once

#include "cache/cache.h"

// Fill the magazines that are empty, and have the kernel give the pages of the blocks in all.
HAK_INTERNAL void hak_prewarm_cache(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
