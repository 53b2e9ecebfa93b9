// large.h -- blocks above 32 KiB: runs of units, mappings of their own, and BigCache.
//
// Layer     cache
// Threads   any: each call takes the lock of the cache it is given.
// Fails     NULL without memory.
//
// A freed large block is kept in the freeing thread's cache, in a bin for its size, so
// that the next request of that size costs no system call, no page fault and no lock
// that others want. What exceeds the budget, or has waited for long, goes back.
#ifndef HAK_CACHE_LARGE_H
#define HAK_CACHE_LARGE_H

#include "cache/cache.h"
#include "slab/arena.h"

// A block of at least `bytes` > HAK_SMALL_MAX, aligned to `alignment` (a power of two). Sets
// `zeroed` when its pages are untouched.
HAK_INTERNAL void *
hak_large_alloc(struct hak_cache *cache, size_t bytes, size_t alignment, bool *zeroed);
// Free `block`, whose map entry is `entry` and names no owner. Dies unless it is a large block in use.
HAK_INTERNAL void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry);

// The short ways, without a lock: a block just freed, and a place for it.
HAK_INLINE void *hak_large_reuse(struct hak_cache *cache, size_t bytes)
{
    const unsigned bin = hak_large_bin_of(bytes);
    if (HAK_UNLIKELY(bin >= HAK_HOT_BINS) ||
        (uintptr_t)hak_load_relaxed(&cache->hot[bin]) <= (uintptr_t)HAK_FULL) {
        return NULL;
    }
    void *block = hak_swap_acquire(&cache->hot[bin], NULL); // pairs with: hak_large_keep
    if (HAK_LIKELY(block != NULL)) {
        hak_map_set_one(block, HAK_MAP_LARGE(bin));
    }
    return block;
}

HAK_INLINE bool hak_large_keep(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint32_t bin = entry - HAK_SMALL_CLASSES;
    if (bin >= HAK_HOT_BINS || hak_load_relaxed(&cache->hot[bin]) != NULL ||
        HAK_UNLIKELY(!hak_is_aligned(block, HAK_UNIT_BYTES))) {
        return false;
    }
    hak_map_set_one(block, HAK_MAP_KEPT);
    hak_store_relaxed(&cache->hot_tick[bin], (uint32_t)hak_load_relaxed(&hak_arena.tick));
    hak_store_release(&cache->hot[bin], block); // pairs with: hak_large_reuse
    return true;
}
// Grow or shrink it where it lies, or by moving its pages. Returns where it is then, or NULL when
// it has to be copied.
HAK_INTERNAL void *hak_large_resize(struct hak_slab *slab, size_t bytes);

// Make a block the heap's, and free all that still are. The second with the lock.
HAK_INTERNAL void hak_large_belongs(void *block, struct hak_cache *heap);
HAK_INTERNAL void hak_large_end_all(struct hak_cache *heap);

// Give back kept blocks that have waited for `age` ticks. With the lock.
HAK_INTERNAL void hak_large_expire(struct hak_cache *cache, uint64_t age);

#endif
