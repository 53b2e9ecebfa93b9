// sweep_cache.h -- giving back what one cache holds and does not use.
//
// Threads   any that holds the locks.
#pragma once

#include "cache/cache.h"
#include "owner/pages.h"

// What a pass over the caches gives back, and how.
struct hak_sweep_how {
    bool all;            // everything, also what is in use
    bool waits;          // with `all`: wait for the lock of the next cache
    bool only_idle;      // with `all`: skip caches whose thread was at work since the last pass
    bool tries_again;    // also pages that the kernel refused before
    uint64_t idle_looks; // after so many looks without an event a cache or class is not in use
    uint64_t kept_ticks; // how long a cache may keep a large block
    unsigned lots;       // how many may still be purged: the rest is for the next pass
    struct hak_pages_given given; // pages inside slabs
    uint32_t strip;               // with `all`: the number of the pass
    bool is_put_off; // set if the rest of a cache is for later; with `all`, in the same pass
};

// What a pass found.
struct hak_sweep_found {
    size_t kept_bytes;     // in large blocks that stay, roughly
    size_t returned_bytes; // that slabs got back since the last pass
    bool has_more;         // a part of the pass is left
    bool is_refused;       // the kernel refused some pages inside slabs
};

// Visit one cache in a pass. `self`: a cache of the caller's, whose outboxes get blocks of other owners. True: the
// cache is not in use, and has nothing left to give.
HAK_INTERNAL bool hak_sweep_cache(struct hak_cache *self,
                                  struct hak_cache *cache,
                                  struct hak_sweep_how *how,
                                  struct hak_sweep_found *found)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock);

// Without a sweeper: purge pages inside a few slabs, if many of their blocks have come back. Takes some 10 us; if `blocks` of the
// class came back, that long for each half of a smallest magazine. The cache's thread. The second pair is for any thread, for
// instance one that frees blocks of an owner whose thread may not come by again; it leaves the magazines alone.
HAK_INTERNAL void hak_sweep_cache_if_due(struct hak_cache *cache);
HAK_INTERNAL void hak_sweep_cache_if_due_locked(struct hak_cache *cache,
                                                unsigned size_class,
                                                uint32_t blocks) HAK_REQUIRES(&cache->owner.lock);

HAK_INTERNAL void hak_sweep_cache_slabs_if_due_locked(struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_sweep_cache_slabs_if_due(struct hak_owner *owner); // unless its lock is taken

// Would a pass that takes everything find nothing in the cache? So a thread that is refused again and again makes only one pass.
HAK_INTERNAL bool hak_sweep_cache_is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
