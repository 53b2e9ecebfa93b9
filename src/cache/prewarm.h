// prewarm.h -- the first allocation of each class without a stall (option prewarm_tls).
//
// Threads   the cache's own.
// Fails     without memory fewer magazines are filled.
#pragma once

#include "cache/cache.h"

// Refill the empty magazines, and fault in the pages of the blocks in all magazines.
HAK_INTERNAL void hak_prewarm_cache(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
