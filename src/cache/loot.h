// loot.h -- using the memory of caches whose thread has ended.
//
// Layer     cache
#ifndef HAK_CACHE_LOOT_H
#define HAK_CACHE_LOOT_H

#include "cache/cache.h"

// A slab of `size_class` with blocks to give, taken over from a cache without a thread; not
// linked in any list. NULL when a few looks found none. With the lock of `cache`.
HAK_INTERNAL struct hak_slab *hak_loot_slab(struct hak_cache *cache, unsigned size_class);

#endif
