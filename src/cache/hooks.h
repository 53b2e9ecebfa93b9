// hooks.h -- the functions that the core calls where a feature may take part.
//
// Threads   the caller's; no lock is held, unless it says otherwise.
//
// The core names no feature: hardening, guards, sampling, site rules, recorded failures. Where one may take part, a slow
// path calls one of these functions. The feature defines it, or src/hooks.c if it is several features'; a build
// of the core alone takes it from src/hooks_core.c ("Alone:" says what it does there). The fast paths
// call no hook: a feature makes a call that it wants to see look empty, full or foreign (fast_path.h).
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// ---- malloc ----

// A small block, when the fast path found none. Alone: hak_slow_malloc.
HAK_INTERNAL void *hak_hook_malloc(
    size_t bytes, size_t size_class, struct hak_cache *cache, const void *site, size_t alignment);
// A block out of the cache. A `note` other than 0 goes to hak_hook_taken, without the lock. Alone: from the magazine, or by refill.
HAK_INTERNAL void *hak_hook_take(struct hak_cache *cache,
                                 unsigned size_class,
                                 size_t bytes,
                                 size_t *note) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_hook_taken(void *block, struct hak_request request, size_t note);
// Must this request fail, although it could be served? Asked where caches have no magazines (direct.h). Alone: no.
HAK_INTERNAL bool hak_hook_refuses(struct hak_request request);
// A request was refused; `mark` as for hak_refuse_memory.
HAK_INTERNAL void hak_hook_refused(enum hak_refuse_reason reason,
                                   struct hak_request request,
                                   uint64_t mark);
// How many blocks a refill takes: 1 to `most`. Alone: `most`.
HAK_INTERNAL uint32_t hak_hook_refill(const struct hak_cache *cache,
                                      unsigned size_class,
                                      uint32_t most);
// How to serve a large request, beside its size (enum hak_way). Alone: 0.
HAK_INTERNAL unsigned hak_hook_ways(const void *site);
// A kept block from the BigCache of another of the thread's caches, or NULL.
HAK_INTERNAL void *hak_hook_reuse(size_t bytes, const void *site);
// BigCache has handed out `block`, with which the count in large_gaps reached 0. Returns the block.
HAK_INTERNAL void *hak_hook_counted(struct hak_cache *cache,
                                    void *block,
                                    size_t bytes,
                                    const void *site);
// A large block was made, or resized, for the thread's request.
HAK_INTERNAL void hak_hook_large(void *block, struct hak_request request);
// A slab that has sampled blocks ends with its heap.
HAK_INTERNAL void hak_hook_forget_slab(const struct hak_run *slab);

// With option guard_large. The first makes an inset large block (slab/mapping.h); NULL: make an ordinary one. The others: an inset
// block is being freed; resize it where it lies, false if that fails; it will grow.
HAK_INTERNAL struct hak_run *hak_hook_inset_map(size_t bytes, size_t alignment);
HAK_INTERNAL void hak_hook_inset_freed(struct hak_run *run);
HAK_INTERNAL bool hak_hook_inset_resize(struct hak_run *run, size_t bytes);
HAK_INTERNAL void hak_hook_inset_leave_room(struct hak_run *run);

// ---- free, realloc, questions about blocks ----

// The slow path of free, in a cache with frees_apart. Alone: hak_slow_free.
HAK_INTERNAL void hak_hook_free(void *block, struct hak_cache *cache);
// Free a block of a unit whose map entry has the mark of samples (hak_map_is_sampled); `entry`: without the mark.
HAK_INTERNAL void hak_hook_free_marked(void *block, struct hak_cache *cache, uint32_t entry);
// True: a feature has freed the block itself. Includes hak_hook_follow. Alone: false.
HAK_INTERNAL bool hak_hook_freed(void *block,
                                 uint32_t entry,
                                 struct hak_cache *cache,
                                 const void *site);
// Free a block of a hardened slab: it goes into the slab, or waits, in `cache`, the thread's own, or with its owner. Drops the
// owner's lock.
HAK_INTERNAL void hak_hook_put(struct hak_cache *cache,
                               struct hak_owner *owner,
                               struct hak_run *slab,
                               void *block);
// The cache whose BigCache the thread of `cache` uses. Alone: `cache`.
HAK_INTERNAL struct hak_cache *hak_hook_keeper(struct hak_cache *cache);
// How many bytes the program may use of a small block of `block_bytes`. Asked where features see every block (seen.h).
HAK_INTERNAL size_t hak_hook_usable(const void *block, size_t block_bytes);
// realloc of a small block to `bytes`, where every call is seen (direct.h). Alone: HAK_RESIZED_AS_USUAL.
enum hak_resized {
    HAK_RESIZED_AS_USUAL,  // no feature takes part
    HAK_RESIZED_IN_PLACE,  // done
    HAK_RESIZED_BY_A_COPY, // the caller has to copy
};
HAK_INTERNAL enum hak_resized hak_hook_resize(void *block, size_t bytes);
// Does `block` lie in a feature's own memory? Alone: no. If so, the second returns how many bytes the program asked for; 0: not a
// block in use.
HAK_INTERNAL bool hak_hook_owns(const void *block);
HAK_INTERNAL size_t hak_hook_owned_bytes(const void *block);

// ---- caches and the process ----

// Adapt the cache to features that were switched on or off. Its thread, in a slow path.
HAK_INTERNAL void hak_hook_follow(struct hak_cache *cache);
// In the child of a fork: the cache's thread exists in the parent only.
HAK_INTERNAL void hak_hook_forked(struct hak_cache *cache);
// Is the cache the calling thread's? Alone: is it hak_cache_self?
HAK_INTERNAL bool hak_hook_is_own(const struct hak_cache *cache);
// Put the blocks that a feature holds in the cache into their slabs. The second is for a cache whose thread lives and may be
// at work on them; false: some are left. The third forgets them, because their heap ends.
HAK_INTERNAL void hak_hook_flush(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL bool hak_hook_empty(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_hook_forget(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The cache is dead and owns nothing: end what features have for it, and sampling.
HAK_INTERNAL void hak_hook_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Do features hold no blocks in the cache? A hint. And a number that changes whenever a feature is at work in the cache.
HAK_INTERNAL bool hak_hook_is_bare(struct hak_cache *cache);
HAK_INTERNAL uint64_t hak_hook_events(struct hak_cache *cache);
// Before and after everything that is free goes back to the system.
HAK_INTERNAL void hak_hook_sweeps_everything(void);
HAK_INTERNAL void hak_hook_swept_everything(void);
// Called once each: as soon as the options are known; when everything has started; before the process ends; when it ends and
// each block is checked for the last time.
HAK_INTERNAL void hak_hook_start(void);
HAK_INTERNAL void hak_hook_started(void);
HAK_INTERNAL void hak_hook_stopping(void);
HAK_INTERNAL void hak_hook_check(void);
// A lock of rank "samples", for fork; NULL: none.
HAK_INTERNAL struct hak_lock *hak_hook_lock(void);
