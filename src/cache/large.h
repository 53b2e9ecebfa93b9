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

// A block of at least `bytes` > HAK_SMALL_MAX, aligned to `alignment` (a power of two). Sets
// `zeroed` when its pages are untouched.
HAK_INTERNAL void *
hak_large_alloc(struct hak_cache *cache, size_t bytes, size_t alignment, bool *zeroed);
HAK_INTERNAL void hak_large_free(struct hak_cache *cache, struct hak_slab *slab);
// Grow or shrink it where it lies, or by moving its pages. Returns where it is then, or NULL when
// it has to be copied.
HAK_INTERNAL void *hak_large_resize(struct hak_slab *slab, size_t bytes);

// Make a block the heap's, and free all that still are. The second with the lock.
HAK_INTERNAL void hak_large_belongs(void *block, struct hak_cache *heap);
HAK_INTERNAL void hak_large_end_all(struct hak_cache *heap);

// Give back kept blocks that have waited for `age` ticks. With the lock.
HAK_INTERNAL void hak_large_expire(struct hak_cache *cache, uint64_t age);

#endif
