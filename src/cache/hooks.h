// hooks.h -- where features come in.
//
// Threads   as who calls; no lock is held but where it says so.
//
// The core is what every allocator needs, and names nothing of a feature: hardening, guards, sampling, site rules, noted
// failures. Where one of them may have a say, a slow path calls one of these functions. The feature defines it, or
// src/hooks.c if several have a part in it; in a build of the core alone src/hooks_core.c does ("alone:" says how).
// The fast paths call none: a feature makes what it wants to see look empty, full or foreign (fast_path.h).
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// ---- malloc ----

// A small block that the fast path did not find, for a call that returns to `site`. Alone: hak_slow_malloc.
HAK_INTERNAL void *hak_hook_malloc(
    size_t bytes, size_t size_class, struct hak_cache *cache, const void *site, size_t alignment);
// A block out of the cache; `note` is for hak_hook_taken, 0 when it need not be called. Alone: out of its magazine.
HAK_INTERNAL void *hak_hook_take(struct hak_cache *cache,
                                 unsigned size_class,
                                 size_t bytes,
                                 size_t *note) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_hook_taken(void *block, struct hak_request request, size_t note);
// Is a request refused that could be served? Asked for caches without magazines, where every call is seen. Alone: no.
HAK_INTERNAL bool hak_hook_refuses(struct hak_request request);
// It was refused; `mark` as for hak_refuse_memory.
HAK_INTERNAL void hak_hook_refused(enum hak_refuse_reason reason,
                                   struct hak_request request,
                                   uint64_t mark);
// How many blocks a refill takes: 1 to `most`. Alone: `most`.
HAK_INTERNAL uint32_t hak_hook_refill(const struct hak_cache *cache,
                                      unsigned size_class,
                                      uint32_t most);
// How a large request is served beyond its size (enum hak_way). Alone: 0.
HAK_INTERNAL unsigned hak_hook_ways(const void *site);
// A large block that another of the thread's caches has kept, or NULL.
HAK_INTERNAL void *hak_hook_reuse(size_t bytes, const void *site);
// BigCache has handed out the last of large_gaps' blocks. Returns the block.
HAK_INTERNAL void *hak_hook_counted(struct hak_cache *cache,
                                    void *block,
                                    size_t bytes,
                                    const void *site);
// A large block was made, or resized, for the thread's request.
HAK_INTERNAL void hak_hook_large(void *block, struct hak_request request);
// A slab with noted blocks ends with its heap.
HAK_INTERNAL void hak_hook_forget_slab(const struct hak_run *slab);

// With option guard_large: a large block that is inset (slab/mapping.h), or NULL for one as usual. And, of such a one: it is being
// freed; is to have other bytes where it lies, which may fail; will grow.
HAK_INTERNAL struct hak_run *hak_hook_inset_map(size_t bytes, size_t alignment);
HAK_INTERNAL void hak_hook_inset_freed(struct hak_run *run);
HAK_INTERNAL bool hak_hook_inset_resize(struct hak_run *run, size_t bytes);
HAK_INTERNAL void hak_hook_inset_leave_room(struct hak_run *run);

// ---- free, realloc and what is asked about blocks ----

// free's slow path in a cache with frees_apart. Alone: hak_slow_free.
HAK_INTERNAL void hak_hook_free(void *block, struct hak_cache *cache);
// A block of a unit whose map entry is marked (hak_map_is_sampled); `entry` is without the mark.
HAK_INTERNAL void hak_hook_free_marked(void *block, struct hak_cache *cache, uint32_t entry);
// True: a feature has freed the block in a way of its own. Does as well what hak_hook_follow does. Alone: false.
HAK_INTERNAL bool hak_hook_freed(void *block,
                                 uint32_t entry,
                                 struct hak_cache *cache,
                                 const void *site);
// A block of a hardened slab goes back into it, or waits: in `cache`, the thread's own, or with its owner. Drops the owner's
// lock.
HAK_INTERNAL void hak_hook_put(struct hak_cache *cache,
                               struct hak_owner *owner,
                               struct hak_run *slab,
                               void *block);
// The cache whose BigCache is the thread's. Alone: its own.
HAK_INTERNAL struct hak_cache *hak_hook_keeper(struct hak_cache *cache);
// What the program may use of a small block of so many bytes; asked if every block is seen (direct.h).
HAK_INTERNAL size_t hak_hook_usable(const void *block, size_t block_bytes);
// realloc of a small block to `bytes`, where every call is seen (direct.h). Alone: HAK_RESIZED_AS_USUAL.
enum hak_resized {
    HAK_RESIZED_AS_USUAL,  // nobody minds
    HAK_RESIZED_IN_PLACE,  // it is done
    HAK_RESIZED_BY_A_COPY, // it has to be
};
HAK_INTERNAL enum hak_resized hak_hook_resize(void *block, size_t bytes);
// Does `block` lie in memory of a feature's own? And how many bytes the program asked for there; 0: it is no block in use.
// Alone: no.
HAK_INTERNAL bool hak_hook_owns(const void *block);
HAK_INTERNAL size_t hak_hook_owned_bytes(const void *block);

// ---- caches and the process ----

// The thread is in a slow path: it takes notice of what was switched on or off.
HAK_INTERNAL void hak_hook_follow(struct hak_cache *cache);
// The first: its thread ends. The second: in the child of a fork, its thread stayed with the parent.
HAK_INTERNAL void hak_hook_end(struct hak_cache *cache);
HAK_INTERNAL void hak_hook_forked(struct hak_cache *cache);
// Is it the calling thread's? Alone: if it is hak_cache_self.
HAK_INTERNAL bool hak_hook_is_own(const struct hak_cache *cache);
// Blocks that a feature holds in the cache: into their slabs. The second while the thread lives, if it is not at work on
// them; false when not all have gone. The third: the heap ends, and they with it.
HAK_INTERNAL void hak_hook_flush(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL bool hak_hook_empty(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_hook_forget(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// The cache is dead and owns nothing: what features have for it goes, and it samples no more.
HAK_INTERNAL void hak_hook_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Does a feature hold no block in the cache? A hint. And a number that changes whenever a feature does something there.
HAK_INTERNAL bool hak_hook_is_bare(struct hak_cache *cache);
HAK_INTERNAL uint64_t hak_hook_events(struct hak_cache *cache);
// All that is free is about to be given back; and it was.
HAK_INTERNAL void hak_hook_sweeps_everything(void);
HAK_INTERNAL void hak_hook_swept_everything(void);
// Once: as soon as the options are known; when all is up; before the process ends, and when each block is looked at for the
// last time.
HAK_INTERNAL void hak_hook_start(void);
HAK_INTERNAL void hak_hook_started(void);
HAK_INTERNAL void hak_hook_stopping(void);
HAK_INTERNAL void hak_hook_check(void);
// A lock of rank "samples", for fork; NULL: none.
HAK_INTERNAL struct hak_lock *hak_hook_lock(void);
