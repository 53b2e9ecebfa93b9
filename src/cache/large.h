// large.h -- blocks above 32 KiB: runs of units, and mappings of their own.
//
// Threads   any, for its own cache, unless it says otherwise.
// Fails     NULL without memory.
//
// A freed block of up to 4 MiB waits in the freeing thread's BigCache (bigcache.h) for the next request of its
// size, which then takes no lock, no system call and no page fault. All others go to the arena at once,
// where their pages stay resident for a while, for the next request of any thread and size.
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
// A large block for `request`, which may be for fewer bytes, in the ways of its site. If memory is refused, tries again after all
// caches have given back what they hold. `cache`: the thread's own. `wished`: the preferred alignment, for a growing block that has
// to move; 1: none. `zeroed`: not NULL if the block has to be zeroed; then it becomes true. NULL with errno ENOMEM.
HAK_INTERNAL void *hak_large_serve(struct hak_cache *cache,
                                   struct hak_request request,
                                   size_t wished,
                                   bool *zeroed);
// Zero the block; a larger one without touching pages that are zeros already. Returns it.
HAK_INTERNAL void *hak_large_clear(void *block, size_t bytes);
// Free `block`, whose map entry is `entry` and names no owner. Dies unless it is a large block in use.
HAK_INTERNAL void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry);
// Grow or shrink a block where it lies, or by moving its pages, and forget its sample. Returns its address; or NULL: nothing
// has changed, and the block has to be copied.
HAK_INTERNAL void *hak_large_resize(struct hak_run *run, size_t bytes);
// `block` is the copy of one that grew, and will grow again: if it lies between guards, leave room behind it.
HAK_INTERNAL void hak_large_leave_room(void *block);

// Make a block the heap's; free all blocks that still are the heap's. Both take the heap's lock, but not while they free.
HAK_INTERNAL void hak_large_belongs(void *block, struct hak_cache *heap);
HAK_INTERNAL void hak_large_end_all(struct hak_cache *heap);

// Free a block into BigCache, if it is a large block in use and its place there is empty.
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
