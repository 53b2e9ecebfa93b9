// large.h -- blocks above 32 KiB: runs of units, and mappings of their own.
//
// Threads   any, for its own cache, unless it says otherwise.
// Fails     NULL without memory.
//
// A block to 4 MiB that is freed waits in the freeing thread's BigCache (bigcache.h) for the next request of
// its size: that costs no lock, no system call and no page fault. All
// others go to the arena at once, where their pages stay resident for a while for whoever
// comes next, with whatever size.
#pragma once

#include "cache/bigcache.h"
#include "cache/cache.h"
#include "cache/dying.h"
#include "cache/request.h"
#include "cache/sweeper.h"

// Blocks of the bins from here on, 1 MiB and more, wake the sweeper when a cache keeps one.
#define HAK_SWEPT_BINS 40

// A block of at least `bytes` > HAK_SMALL_MAX, aligned to `alignment` (a power of two). Sets
// `zeroed` when its pages are untouched. `ways`: enum hak_way. Needs no cache.
HAK_INTERNAL void *hak_large_alloc(size_t bytes, size_t alignment, unsigned ways, bool *zeroed);
// One for `request`, which may be smaller, in the ways of its site; when there is no memory, once more after all caches have given
// back what they hold. The thread's own cache. `wished`, for a block that has to move to grow: an alignment that it need not have,
// where there is no room for it; 1: none. `zeroed` is NULL, or, for who needs zeros, whether the pages are untouched. NULL with errno
// ENOMEM.
HAK_INTERNAL void *hak_large_serve(struct hak_cache *cache,
                                   struct hak_request request,
                                   size_t wished,
                                   bool *zeroed);
// Make all of it zero that is not.
HAK_INTERNAL void *hak_large_clear(void *block, size_t bytes);
// Free `block`, whose map entry is `entry` and names no owner. Dies unless it is a large block in use.
HAK_INTERNAL void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry);
// Grow or shrink it where it lies, or by moving its pages. Returns where it is then, a sample no longer; or NULL when
// it has to be copied: nothing has changed.
HAK_INTERNAL void *hak_large_resize(struct hak_run *run, size_t bytes);
// It was copied because it grew, and will grow on: if it lies between guards, leave room behind it.
HAK_INTERNAL void hak_large_leave_room(void *block);

// Make a block the heap's, and free all that still are. Both take the heap's lock, and free without it.
HAK_INTERNAL void hak_large_belongs(void *block, struct hak_cache *heap);
HAK_INTERNAL void hak_large_end_all(struct hak_cache *heap);

// Free a block into BigCache, if it is a large one in use and its place there is free.
HAK_INLINE bool hak_large_keep(struct hak_cache *cache, void *block)
{
    uint32_t bin;
    if (!hak_bigcache_keep(cache, block, &bin)) {
        return false;
    }
    if (bin >= HAK_SWEPT_BINS && !hak_load_relaxed(&hak_sweep_runs) && !hak_dying_now()) {
        hak_sweeper_wanted(HAK_MIB(4)); // at most
    }
    return true;
}
