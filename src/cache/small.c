// small.c -- see small.h.
#include "cache/small.h"

#include "base/timing.h"
#include "cache/bigcache.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/pools.h"
#include "cache/reclaim.h"
#include "cache/refuse.h"
#include "cache/sweep.h"
#include "cache/take.h"
#include "meta/map.h"
#include "os/refusal.h"
#include "owner/watch.h"
#include "slab/arena.h"
#include "slab/feed.h"
#include "slab/slab.h"

HAK_INLINE void *take_once(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    size_t note = 0;
    hak_lock_take(&cache->owner.lock);
    hak_count(&cache->owner.events, 1);
    void *block = hak_hook_take(cache, size_class, request.bytes, &note);
    hak_watch_note(&cache->owner); // the cache may have fallen asleep while we waited for the lock
    hak_lock_drop(&cache->owner.lock);
    if (HAK_UNLIKELY(note != 0)) {
        hak_hook_taken(block, request, note);
    }
    return block;
}

void *hak_small_take_large(struct hak_cache *cache, struct hak_request request)
{
    void *block = hak_bigcache_reuse(cache, hak_size_class_bin(HAK_SMALL_MAX + 1));
    if (block == NULL) {
        return hak_large_serve(cache, request, 1, NULL);
    }
    hak_hook_large(block, request);
    return block;
}

static void *take_swept(struct hak_cache *cache,
                        struct hak_request request,
                        unsigned size_class,
                        uint64_t mark)
{
    struct hak_sweep_retry retry = {.mark = mark};
    void *block;
    do {
        hak_sweep_for_request(&retry);
        block = take_once(cache, request, size_class);
    } while (block == NULL &&
             hak_sweep_may_help(&retry, hak_classes[size_class].units * HAK_UNIT_BYTES));
    return block;
}

// If there are units for a slab, but the pool has no memory for its descriptors: give the pool a unit, and try again.
static void *take_fed(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    return hak_feed_pool(hak_arena_shard(cache->owner.tag),
                         hak_classes[size_class].units,
                         hak_slab_described_bytes(size_class))
               ? take_once(cache, request, size_class)
               : NULL;
}

// Take a block of a slab that exists, of the class or of a larger one with that alignment.
static void *take_above(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    void *block = NULL;
    for (unsigned i = size_class; i < HAK_SMALL_CLASSES && block == NULL; i++) {
        const bool fits = hak_classes[i].bytes % request.alignment == 0 && hak_pools_have(i);
        if (fits && hak_take_has_slab(cache, i)) {
            if (i != size_class) {
                hak_pools_go_above();
            }
            block = take_once(cache, request, i);
        }
    }
    return block;
}

// How often slabs are shared for one request: other threads may take them first.
enum { SHARED_MOST = 8 };

// The same, also of other threads' slabs.
static void *take_shared(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    void *block = take_above(cache, request, size_class);
    for (unsigned i = 0; block == NULL && i < SHARED_MOST &&
                         hak_reclaim_share(&cache->owner, size_class, request.alignment);
         i++) {
        block = take_above(cache, request, size_class);
    }
    return block;
}

// If no run of free units is long enough for a slab, or a slab cannot be described, a single unit may be free.
static void *take_unit(struct hak_cache *cache,
                       struct hak_request request,
                       unsigned size_class,
                       uint64_t mark)
{
    if (hak_classes[size_class].units == 1 && !hak_arena_has_units(1)) {
        return hak_refuse_memory(request, mark);
    }
    hak_pools_go_above();
    return hak_small_take_large(cache, request);
}

static HAK_COLD void *take_scarce(struct hak_cache *cache,
                                  struct hak_request request,
                                  unsigned size_class)
{
    struct hak_cache *own =
        hak_cache_self != &hak_cache_nobody ? hak_cache_self : &hak_cache_shared;
    const uint64_t mark = hak_refusal_mark();
    void *block = take_swept(cache, request, size_class, mark);
    block = block != NULL ? block : take_fed(cache, request, size_class);
    block = block != NULL ? block : take_shared(cache, request, size_class);
    if (block == NULL && own != cache && cache->owner.has_thread) {
        block = take_shared(own, request, size_class); // some companions take no slabs of others
    }
    return block != NULL ? block : take_unit(own, request, size_class, mark);
}

void *hak_small_take(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    const uint64_t begin = hak_timing_begin();
    void *block = take_once(cache, request, size_class);
    hak_timing_end_for(HAK_TIMING_refill, begin, hak_cache_group(cache));
    return HAK_LIKELY(block != NULL) ? block : take_scarce(cache, request, size_class);
}

void *hak_small_take_of_heap(struct hak_cache *heap,
                             struct hak_request request,
                             unsigned size_class)
{
    void *block = take_once(heap, request, size_class);
    if (HAK_LIKELY(block != NULL)) {
        return block;
    }
    block = take_scarce(heap, request, size_class);
    if (block != NULL && hak_map_is_large(hak_map_entry(block))) {
        hak_large_belongs(block, heap);
    }
    return block;
}
