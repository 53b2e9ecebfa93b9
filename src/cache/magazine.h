// magazine.h -- magazines: their arrays, and emptying them. The caller holds the cache's lock.
//
// Threads   the cache's own thread (or the holder of a heap's lock), unless it says "any".
#pragma once

#include "cache/cache.h"

// Put back what the class's magazine holds, and give it its first size.
HAK_INTERNAL void hak_magazine_shrink(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);

// The same with a grown magazine that was not in use since it was last looked at, of another class than `growing`. False: there is
// none.
HAK_INTERNAL bool hak_magazine_shrink_one(struct hak_cache *cache, unsigned growing)
    HAK_REQUIRES(&cache->owner.lock);

// The blocks that it holds, with those that are gone below its bottom.
HAK_INLINE uint32_t hak_magazine_held(const struct hak_cache *cache, unsigned size_class)
{
    return hak_cache_place(cache, size_class) - 1;
}

// What a refill or a flush moves of so many blocks: half, so that calls of the other kind that follow find room, or all when
// several of its kind came in a row.
enum { HAK_SAME_MOST = 3 };
HAK_INLINE uint32_t hak_magazine_part(const struct hak_magazine *magazine, uint32_t blocks)
{
    return magazine->in_a_row == HAK_SAME_MOST ? blocks : (blocks + 1) / 2;
}

// Note a refill or a flush: it may grow.
HAK_INTERNAL void hak_magazine_note(struct hak_cache *cache, unsigned size_class, bool flush)
    HAK_REQUIRES(&cache->owner.lock);
// Give the class its magazine. False: it gets none, as companions serve it, it is seldom asked for, or there is no memory.
HAK_INTERNAL bool hak_magazine_start_if_due(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Make room in the full magazine of a class and put `block` into it.
HAK_INTERNAL void hak_magazine_spill(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->owner.lock);
// Put every block of every magazine back to where it belongs.
HAK_INTERNAL void hak_magazine_flush_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The same, and do without magazines from now on.
HAK_INTERNAL void hak_magazine_end_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// A cache begins to sample (sampler.h): only free finds its magazines at HAK_APART; and back again, at 0. The thread,
// with the lock.
HAK_INTERNAL void hak_magazine_move_tops(struct hak_cache *cache, unsigned apart)
    HAK_REQUIRES(&cache->owner.lock);
// A slab is needed. If the heap has grown by much since the last time: empty the magazines that were not in
// use, and true. The thread, with the lock.
HAK_INTERNAL bool hak_magazine_tidy(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The cache was not in use for a while, and what it held was taken: its magazines do not count in the budget of all
// until it wakes. The holder of the lock.
HAK_INTERNAL void hak_magazine_sleep(struct hak_cache *cache);
// Magazines may hold less than before, or may grow no more: those that hold too much begin anew. The thread, with
// the lock.
HAK_INTERNAL void hak_magazine_fit(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// What the grown magazines of all caches may hold, but those that sleep. Any thread.
HAK_INTERNAL size_t hak_magazine_grown_bytes(void);
// Companions serve the class from now on: put back what the magazine holds, and do without it.
HAK_INTERNAL void hak_magazine_retire(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// The thread has slept and woken, or has ended a while ago: put back what the magazines hold, and begin without them,
// unless nothing is ever seldom. The thread with the lock, or there is none.
HAK_INTERNAL void hak_magazine_renew(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Forget the blocks in all magazines: their slabs are about to end.
HAK_INTERNAL void hak_magazine_forget_all(struct hak_cache *cache);
