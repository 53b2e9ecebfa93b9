// direct.h -- blocks of caches that keep no magazines: every call is seen, and goes to the slab at once.
//
// Layer     cache
// Threads   any.
//
// For option check, the injector, and what hardens the heap by looking at each block (slab/harden.h). A freed
// block then waits in its owner's quarantine, if there is one, until blocks of so many bytes were freed behind
// it. The owner's, because its lock is held then; a slab that changes hands meanwhile is asked for again
// when the block leaves.
#ifndef HAK_CACHE_DIRECT_H
#define HAK_CACHE_DIRECT_H

#include "cache/cache.h"

// A ring, oldest first.
enum { HAK_QUARANTINE_BLOCKS = 4096 };
struct hak_quarantine {
    uint32_t first;
    uint32_t count;
    size_t bytes;
    void *blocks[HAK_QUARANTINE_BLOCKS];
};

// The class for a request that would be of `size_class`: with room for what is put behind the block.
// HAK_SMALL_CLASSES: a large block.
HAK_INTERNAL unsigned hak_direct_class(unsigned size_class, size_t bytes);
// A block of the class for a request. With the lock; NULL without memory.
HAK_INTERNAL void *hak_direct_take(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock);
// Put a block straight into its slab or quarantine, whoever owns it. No cache locked.
HAK_INTERNAL void hak_direct_put(void *block);

// What the program may use of a block of `block_bytes`.
HAK_INTERNAL size_t hak_direct_usable(const void *block, size_t block_bytes);
// Make it one of `bytes`. False when it has to be copied. No cache locked.
HAK_INTERNAL bool hak_direct_resize(void *block, size_t bytes);

// Take no more blocks from slabs that are not hardened. With the lock.
HAK_INTERNAL void hak_direct_retire_slabs(struct hak_cache *cache);
// At the end of the program: die if a block of any cache is not as it has to be.
HAK_INTERNAL void hak_direct_check_all(void);

#endif
