// magazine.h -- magazines: their arrays, how they grow and how they are flushed. The caller holds the cache's lock.
//
// Threads   the cache's own thread (or the holder of a heap's lock), unless it says "any".
#pragma once

#include "cache/cache.h"

// Flush the class's magazine, and shrink it to its smallest size.
HAK_INTERNAL void hak_magazine_shrink(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);

// The same with one grown magazine, of another class than `growing`, that was not used since the last look at it. False: there is
// none.
HAK_INTERNAL bool hak_magazine_shrink_one(struct hak_cache *cache, unsigned growing)
    HAK_REQUIRES(&cache->owner.lock);

// How many blocks it holds, plus those below its bottom, which are gone.
HAK_INLINE uint32_t hak_magazine_held(const struct hak_cache *cache, unsigned size_class)
{
    return hak_cache_place(cache, size_class) - 1;
}

// How many of `blocks` a refill or flush moves: half, so that calls of the other kind find room or blocks, too; all, if several
// of the same kind came in a row.
enum { HAK_SAME_MOST = 3 };
HAK_INLINE uint32_t hak_magazine_part(const struct hak_magazine *magazine, uint32_t blocks)
{
    return magazine->in_a_row == HAK_SAME_MOST ? blocks : (blocks + 1) / 2;
}

// Note a refill or a flush: the magazine may grow.
HAK_INTERNAL void hak_magazine_note(struct hak_cache *cache, unsigned size_class, bool flush)
    HAK_REQUIRES(&cache->owner.lock);
// Give the class its magazine. False: none, because companions serve the class, it is seldom used, or there is no memory.
HAK_INTERNAL bool hak_magazine_start_if_due(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Make room in the full magazine of a class and put `block` into it. Without a magazine, into its slab.
HAK_INTERNAL void hak_magazine_spill(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->owner.lock);
// Flush the class's magazine.
HAK_INTERNAL void hak_magazine_flush(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Would a flush of the class's magazine find no misuse? Reads only. False also if the magazine has many blocks.
HAK_INTERNAL bool hak_magazine_is_sound(const struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// Flush all magazines.
HAK_INTERNAL void hak_magazine_flush_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The same, and end the magazines.
HAK_INTERNAL void hak_magazine_end_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Move all tops to top[apart + class]. `apart`: HAK_APART when the cache begins to sample, so that only free finds its
// magazines (sampler.h); 0 when it ends that. The thread, with the lock.
HAK_INTERNAL void hak_magazine_move_tops(struct hak_cache *cache, unsigned apart)
    HAK_REQUIRES(&cache->owner.lock);
// A slab is needed. If slabs have grown by much since the last time: flush the magazines that were not used
// meanwhile, and return true. The thread, with the lock.
HAK_INTERNAL bool hak_magazine_tidy(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The cache sleeps, and its magazines were emptied: they do not count in the budget of all caches until it wakes. The
// holder of the lock.
HAK_INTERNAL void hak_magazine_sleep(struct hak_cache *cache);
// The options allow smaller magazines than before: end those that are too large. The thread, with
// the lock.
HAK_INTERNAL void hak_magazine_fit(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// How much the magazines of all caches that do not sleep can hold beyond their smallest sizes. Any thread.
HAK_INTERNAL size_t hak_magazine_grown_bytes(void);
// Companions serve the class from now on: flush and end its magazine.
HAK_INTERNAL void hak_magazine_retire(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// The thread has slept and woken, or has ended a while ago: flush and end the magazines, and count calls anew (seldom.h).
// Not in caches whose classes have magazines from the start. The thread, or any if it has ended.
HAK_INTERNAL void hak_magazine_renew(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Forget the blocks in all magazines: their slabs are about to end.
HAK_INTERNAL void hak_magazine_forget_all(struct hak_cache *cache);
