// loot.h -- slabs whose thread has ended.
//
// Layer     cache
// Owns      hak_orphans: a cache without a thread that owns every such slab.
// Threads   any; its lock has the rank "orphans", after every other cache's.
//
// A thread that ends leaves its slabs here, full ones too. Blocks of them that are freed later
// arrive in the orphans' inbox; whoever needs a slab looks here before it asks the arena.
#ifndef HAK_CACHE_LOOT_H
#define HAK_CACHE_LOOT_H

#include "cache/cache.h"

HAK_INTERNAL extern struct hak_cache hak_orphans;

// A slab of `size_class` with blocks to give, taken over from the orphans for `cache`; not linked
// in any list. NULL when there is none. With the lock of `cache`.
HAK_INTERNAL struct hak_slab *hak_loot_slab(struct hak_cache *cache, unsigned size_class);
// Leave every slab of `cache` to the orphans. With its lock.
HAK_INTERNAL void hak_loot_leave(struct hak_cache *cache);

#endif
