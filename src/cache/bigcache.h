// bigcache.h -- BigCache: freed large blocks that a cache keeps for the next request of their size.
//
// Owns      hak_cache.hot: one place for each doubling from 36 KiB to 4 MiB.
// Threads   the cache's own, unless it says otherwise: the thread fills a place, any thread empties it with an
//           exchange.
#pragma once

#include "cache/cache.h"
#include "owner/watch.h"
#include "slab/arena.h"

// Give back kept blocks that have waited for `age` ticks. Any thread. Returns the bytes still kept.
HAK_INTERNAL size_t hak_bigcache_expire(struct hak_cache *cache, uint64_t age);

// Give back all kept blocks, and keep none from now on. The thread, or before the cache has one. The lock keeps out sweeps, which
// could mistake HAK_FULL in a place for a block.
HAK_INTERNAL void hak_bigcache_keep_nothing(struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);

// The place for blocks of a bin: &cache->hot[bin / 8], written so that compilers need fewer than five instructions.
HAK_INLINE struct hak_hot *hak_bigcache_place(struct hak_cache *cache, unsigned bin)
{
    _Static_assert(sizeof(struct hak_hot) == 32, "four bytes for each of eight bins");
    return (struct hak_hot *)(void *)((char *)cache->hot + (size_t)(bin & ~7U) * 4);
}

// Take the kept block of a request's bin; NULL: there is none, or `bin` is beyond the last. Step take_kept of bigcache.pml.
HAK_INLINE void *hak_bigcache_reuse(struct hak_cache *cache, unsigned bin)
{
    if (HAK_UNLIKELY(bin >= HAK_LARGE_BINS)) {
        return NULL;
    }
    struct hak_hot *hot = hak_bigcache_place(cache, bin);
    if (HAK_UNLIKELY(hot->bin != bin)) {
        return NULL;
    }
    void *block = hak_swap_acquire(&hot->block, NULL); // pairs with: hak_bigcache_put
    if (HAK_LIKELY(block != NULL)) {
        hak_store_relaxed(hot->entry, HAK_MAP_LARGE(bin));
    }
    return block;
}

// Put a block of `bin`, whose map entry is `*entry`, into its empty place. Step put
// of bigcache.pml.
HAK_INLINE void hak_bigcache_put(struct hak_hot *hot,
                                 void *block,
                                 unsigned bin,
                                 _Atomic(uint32_t) *entry)
{
    hak_store_relaxed(entry, HAK_MAP_LARGE(bin) | HAK_MAP_KEPT);
    hot->bin = bin;
    hot->entry = entry;
    hak_store_relaxed(&hot->tick, (uint32_t)hak_load_relaxed(&hak_arena.tick));
    hak_store_release(&hot->block, block); // pairs with: hak_bigcache_reuse
}

// Put `block` in if it is a large block in use and its place is empty; sets `bin`. Step keep of bigcache.pml, step put_then_look
// of sweeper.pml.
HAK_INLINE bool hak_bigcache_keep(struct hak_cache *cache, void *block, uint32_t *bin)
{
    _Atomic(uint32_t) *entry;
    if (!hak_map_is_start(block, &entry)) {
        return false;
    }
    *bin = hak_load_relaxed(entry) - HAK_SMALL_CLASSES;
    struct hak_hot *hot = hak_bigcache_place(cache, *bin);
    if (*bin >= HAK_LARGE_BINS || hak_load_relaxed(&hot->block) != NULL) {
        return false;
    }
    hak_bigcache_put(hot, block, *bin, entry);
    hak_fence_compiler(); // see sweeper_may_sleep and unwatch_judge
    hak_watch_note(&cache->owner);
    return true;
}

// Put `block` in, and give back the block that it replaces. False: the cache keeps nothing.
HAK_INTERNAL bool hak_bigcache_keep_instead(struct hak_cache *cache, void *block, size_t bytes);
// No kept block fits a request of `bytes`: give back those of its doubling and of larger ones, so that the new block can reuse
// their resident pages.
HAK_INTERNAL void hak_bigcache_make_room(struct hak_cache *cache, size_t bytes);
// Give a large block's memory back to the arena, or to the system. The caller has the block to itself; needs no cache's lock.
HAK_INTERNAL void hak_bigcache_give(struct hak_run *run);
