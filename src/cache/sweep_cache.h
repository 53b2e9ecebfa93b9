// sweep_cache.h -- giving back what one cache holds that is not in use.
//
// Threads   any that holds the locks.
#pragma once

#include "cache/cache.h"
#include "owner/pages.h"

// What a pass over the caches gives back.
struct hak_sweep_how {
    bool all;         // also of what is in use
    bool waits;       // with that: for the lock of the next cache
    bool only_idle;   // with that: but not of a cache whose thread was at work since the last pass
    bool tries_again; // also pages that the kernel has not taken before
    uint64_t idle_looks; // looks without an event: then a cache, or a class of it, is not in use
    uint64_t kept_ticks; // how long a cache may keep a large block
    unsigned lots;       // that may still be given back: the rest is for the next pass
    struct hak_pages_given given; // pages inside slabs
    uint32_t strip;               // with `all`: the number of the pass
    bool is_put_off; // set when the rest of a cache is for later: with `all`, in the same pass
};

// What it found.
struct hak_sweep_found {
    size_t kept_bytes;     // in large blocks that stay, more or less
    size_t returned_bytes; // that slabs got back since the last pass
    bool has_more;         // of the pass is left
    bool is_refused;       // the kernel has not taken some pages inside slabs
};

// One cache's share of a pass. `self`: a cache of the caller's, for blocks on their way to other owners. True when the
// cache is not in use, and there is nothing left to give.
HAK_INTERNAL bool hak_sweep_cache(struct hak_cache *self,
                                  struct hak_cache *cache,
                                  struct hak_sweep_how *how,
                                  struct hak_sweep_found *found)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock);

// Without a sweeper: give back pages inside a few slabs, if many of their blocks have come back. Takes some 10 us; when the class
// gets back more blocks than half of a first magazine, so much for each such half. Its thread; the next two anyone, who leaves its
// magazines alone: who frees blocks of another, which may not come by again.
HAK_INTERNAL void hak_sweep_cache_if_due(struct hak_cache *cache);
HAK_INTERNAL void hak_sweep_cache_if_due_locked(struct hak_cache *cache,
                                                unsigned size_class,
                                                uint32_t blocks) HAK_REQUIRES(&cache->owner.lock);

HAK_INTERNAL void hak_sweep_cache_slabs_if_due_locked(struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_sweep_cache_slabs_if_due(struct hak_owner *owner); // unless its lock is taken

// Would a pass that takes everything find nothing in it? So a thread that is refused again and again passes over the caches once.
HAK_INTERNAL bool hak_sweep_cache_is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
