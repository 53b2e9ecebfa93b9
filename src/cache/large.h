// large.h -- blocks above 32 KiB: runs of units, mappings of their own, and BigCache.
//
// Layer     cache
// Threads   any, for its own cache, unless it says otherwise.
// Fails     NULL without memory.
//
// A block to 4 MiB that is freed waits in the freeing thread's cache for the next request of
// its size, one per doubling: that costs no lock, no system call and no page fault. All
// others go to the arena at once, where their pages stay resident for a while for whoever
// comes next, with whatever size.
#ifndef HAK_CACHE_LARGE_H
#define HAK_CACHE_LARGE_H

#include "cache/cache.h"
#include "cache/dying.h"
#include "cache/request.h"
#include "cache/sweeper.h"
#include "cache/watch.h"
#include "slab/arena.h"

// What a cache keeps in the bins from here on, 1 MiB and more, is worth a sweeper.
#define HAK_SWEPT_BINS 40

// A block of at least `bytes` > HAK_SMALL_MAX, aligned to `alignment` (a power of two). Sets
// `zeroed` when its pages are untouched. `ways`: enum hak_way. Needs no cache.
HAK_INTERNAL void *hak_large_alloc(size_t bytes, size_t alignment, unsigned ways, bool *zeroed);
// One for `request`, which may be smaller, in the ways of its site; when there is no memory, once more
// after all caches have given back what they hold. The thread's own cache. `zeroed` is NULL, or, for who needs
// zeros, whether the pages are untouched. NULL with errno ENOMEM.
HAK_INTERNAL void *hak_large_serve(struct hak_cache *cache,
                                   struct hak_request request,
                                   bool *zeroed);
// Make all of it zero that is not.
HAK_INTERNAL void *hak_large_clear(void *block, size_t bytes);
// Free `block`, whose map entry is `entry` and names no owner. Dies unless it is a large block in use.
HAK_INTERNAL void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry);
// Grow or shrink it where it lies, or by moving its pages. Returns where it is then, or NULL when
// it has to be copied.
HAK_INTERNAL void *hak_large_resize(struct hak_slab *slab, size_t bytes);
// It was copied because it grew, and will grow on: if it lies between guards, leave room behind it.
HAK_INTERNAL void hak_large_leave_room(void *block);

// It is about to be freed or resized: if it is a sample, it is one no longer. Who holds the block.
HAK_INTERNAL void hak_large_forget_sample(struct hak_slab *slab);
// Make a block the heap's, and free all that still are. The second with the heap's lock.
HAK_INTERNAL void hak_large_belongs(void *block, struct hak_cache *heap);
HAK_INTERNAL void hak_large_end_all(struct hak_cache *heap);

// Give back kept blocks that have waited for `age` ticks. Any thread. Returns the bytes still kept.
HAK_INTERNAL size_t hak_large_expire(struct hak_cache *cache, uint64_t age);

// From now on, keep none; there is none. The owner, as well as who asks.
HAK_INTERNAL void hak_large_keep_nothing(struct hak_cache *cache);

// The place for blocks of a bin: &cache->hot[bin / 8], which compilers make five instructions of.
HAK_INLINE struct hak_hot *hak_large_place(struct hak_cache *cache, unsigned bin)
{
    _Static_assert(sizeof(struct hak_hot) == 32, "four bytes for each of eight bins");
    return (struct hak_hot *)(void *)((char *)cache->hot + (size_t)(bin & ~7U) * 4);
}

// BigCache: take a block of a bin out of its place, or NULL. Step take_kept of bigcache.pml.
HAK_INLINE void *hak_large_take_kept(struct hak_cache *cache, unsigned bin)
{
    struct hak_hot *hot = hak_large_place(cache, bin);
    if (HAK_UNLIKELY(hot->bin != bin)) {
        return NULL;
    }
    void *block = hak_swap_acquire(&hot->block, NULL); // pairs with: hak_large_put
    if (HAK_LIKELY(block != NULL)) {
        hak_store_relaxed(hot->entry, HAK_MAP_LARGE(bin));
    }
    return block;
}

// The same for a request, whose bin may be beyond the last.
HAK_INLINE void *hak_large_reuse(struct hak_cache *cache, unsigned bin)
{
    return HAK_LIKELY(bin < HAK_LARGE_BINS) ? hak_large_take_kept(cache, bin) : NULL;
}

// BigCache: put a block of `bin`, whose map entry is `*entry`, into its place, which is free. Step put
// of bigcache.pml.
HAK_INLINE void hak_large_put(struct hak_hot *hot,
                              void *block,
                              unsigned bin,
                              _Atomic(uint32_t) *entry)
{
    hak_store_relaxed(entry, HAK_MAP_LARGE(bin) | HAK_MAP_KEPT);
    hot->bin = bin;
    hot->entry = entry;
    hak_store_relaxed(&hot->tick, (uint32_t)hak_load_relaxed(&hak_arena.tick));
    hak_store_release(&hot->block, block); // pairs with: hak_large_take_kept
}

// BigCache: put the block in if it is one in use and its place is free. Step keep of bigcache.pml, step
// put_then_look of sweeper.pml.
HAK_INLINE bool hak_large_keep(struct hak_cache *cache, void *block)
{
    _Atomic(uint32_t) *entry;
    if (!hak_map_is_start(block, &entry)) {
        return false;
    }
    const uint32_t bin = hak_load_relaxed(entry) - HAK_SMALL_CLASSES;
    struct hak_hot *hot = hak_large_place(cache, bin);
    if (bin >= HAK_LARGE_BINS || hak_load_relaxed(&hot->block) != NULL) {
        return false;
    }
    hak_large_put(hot, block, bin, entry);
    hak_keep_order(); // see sweeper_may_sleep and hak_watch_judge
    hak_watch_note(cache);
    if (bin >= HAK_SWEPT_BINS && !hak_load_relaxed(&hak_sweep_runs) && !hak_is_dying()) {
        hak_sweep_wanted(HAK_MIB(4)); // at most
    }
    return true;
}

#endif
