// slow.c -- what the fast paths fall back to.
#include <string.h>

#include "base/timing.h"
#include "cache/direct.h"
#include "cache/dying.h"
#include "cache/failure.h"
#include "cache/fast_path.h"
#include "cache/guard.h"
#include "cache/hardened.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/nested.h"
#include "cache/pools.h"
#include "cache/sample.h"
#include "cache/sampler.h"
#include "cache/site.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "cache/thread.h"
#include "cache/watch.h"
#include "os/refusal.h"
#include "slab/misuse.h"

// Must caches do without magazines, and was this one made before that was known?
static bool direct_came_late(const struct hak_cache *cache)
{
    return HAK_UNLIKELY(hak_start_is_direct()) && !cache->is_direct;
}

// Sets `every` when the block is a sample.
static void *malloc_locked(struct hak_cache *cache,
                           unsigned size_class,
                           size_t bytes,
                           size_t *every) HAK_REQUIRES(&cache->lock)
{
    void *block;
    bool is_sample;
    if (cache->is_direct) {
        *every = hak_load_relaxed(&hak_options.sample_bytes);
        block = hak_direct_take(cache, size_class, bytes);
        is_sample = block != NULL && hak_sampler_passes_direct(cache, size_class, *every);
    } else {
        *every = hak_sampler_every(cache);
        // There may be blocks: the next one is a sample, or the cache was an earlier thread's.
        block = hak_cache_pop(cache, hak_top_of(cache, size_class));
        if (block == NULL) {
            block = hak_magazine_refill(cache, size_class);
        }
        is_sample = block != NULL && hak_sampler_passes(cache, size_class);
    }
    *every = is_sample ? *every : 0;
    return block;
}

// The block, noted if it is a sample: one in `every` bytes, or 0.
static void *malloc_sampled(void *block, struct hak_request request, size_t every)
{
    if (HAK_UNLIKELY(every != 0)) {
        hak_sample_take(block, request, every);
    }
    return block;
}

// There is no memory for a block: give back what all caches hold, and try once more.
static HAK_COLD void *malloc_again(struct hak_cache *cache,
                                   struct hak_request request,
                                   unsigned size_class)
{
    hak_sweep_everything();
    const uint64_t mark = hak_refusal_mark();
    hak_lock_take(&cache->lock);
    size_t every;
    void *block = malloc_locked(cache, size_class, request.bytes, &every);
    hak_lock_drop(&cache->lock);
    return block != NULL ? malloc_sampled(block, request, every) : hak_refuse_memory(request, mark);
}

// Blocks of a class are as much aligned as their size.
static size_t class_alignment(size_t size_class)
{
    return hak_classes[size_class].bytes & -hak_classes[size_class].bytes;
}

// All pools that have classes for it are off. It is aligned as a block of the class would be, for whose
// alignment the class was chosen.
static HAK_COLD void *malloc_large(struct hak_cache *cache,
                                   struct hak_request request,
                                   size_t size_class)
{
    void *block = hak_large_reuse(cache, hak_large_bin_of(HAK_SMALL_MAX + 1));
    if (block == NULL) {
        request.alignment = class_alignment(size_class);
        return hak_large_serve(cache, request, NULL);
    }
    hak_sampler_large(block, request);
    return block;
}

// The class that serves a request; HAK_SMALL_CLASSES: a large block does.
static unsigned class_serving(const struct hak_cache *cache, unsigned size_class, size_t bytes)
{
    if (HAK_UNLIKELY(cache->is_direct)) {
        size_class = hak_hardened_class(size_class, bytes);
    }
    return size_class < HAK_SMALL_CLASSES ? hak_pools_class(size_class) : size_class;
}

// Not what a hardened heap has written behind the block.
static void *zero_if_ruled(void *block, size_t size_class, unsigned ways)
{
    return (ways & HAK_WAY_ZERO) != 0
               ? memset(block, 0, hak_direct_usable(block, hak_classes[size_class].bytes))
               : block;
}

// There is no cache. A block of the class is aligned as its size is.
static HAK_COLD void *refuse_or_nest(struct hak_request request, size_t size_class)
{
    if (!hak_is_nested) {
        return hak_refuse_memory(request, 0);
    }
    request.alignment = hak_classes[size_class].bytes & -hak_classes[size_class].bytes;
    return hak_nested_alloc(request);
}

void *hak_malloc_slowest(size_t bytes, size_t size_class, const void *site)
{
    unsigned ways = 0;
    const struct hak_request request = {bytes, 1, site};
    struct hak_cache *cache = hak_cache_self;
    if (hak_is_dying()) {
        return hak_dying_take((struct hak_request){bytes, class_alignment(size_class), site});
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(NULL);
        if (cache == NULL) {
            return refuse_or_nest(request, size_class);
        }
    }
    hak_nested_settle();
    if (HAK_UNLIKELY(cache->magazines[size_class].is_ruled)) {
        void *block = hak_site_pop(cache, size_class, site);
        if (HAK_LIKELY(block != NULL)) {
            return block;
        }
    }
    if (direct_came_late(cache)) {
        hak_start_direct(cache);
    }
    hak_watch_follow(cache);
    hak_sampler_follow(cache);
    const unsigned served = class_serving(cache, (unsigned)size_class, bytes);
    if (HAK_UNLIKELY(served != size_class && served < HAK_SMALL_CLASSES)) {
        return hak_cache_alloc_for(cache, bytes, served, site);
    }
    if (HAK_UNLIKELY(cache->is_direct) && hak_injector_is_on() && hak_injector_takes(request)) {
        return hak_refuse(HAK_FAILURE_INJECTED, request);
    }
    if (HAK_UNLIKELY(hak_site_has_rules())) {
        ways = hak_site_ways(site);
    }
    if (hak_guard_is_due(cache)) {
        void *guarded = hak_guard_take(
            (struct hak_request){bytes, (size_t)1 << HAK_WAYS_ALIGN_LOG2(ways), site},
            (unsigned)size_class);
        if (guarded != NULL) {
            return guarded;
        }
    }
    if (HAK_UNLIKELY(served != size_class)) {
        return malloc_large(cache, request, size_class);
    }
    if (HAK_UNLIKELY(hak_site_has_rules())) {
        cache = hak_site_cache(cache, &size_class, ways);
        hak_sampler_follow(cache);
        void *block = hak_cache_pop(cache, size_class); // of a companion
        if (block != NULL) {
            return zero_if_ruled(block, size_class, ways);
        }
    }
    size_t every;
    const uint64_t begin = hak_timing_begin();
    hak_lock_take(&cache->lock);
    hak_count(&cache->events, 1);
    void *block = malloc_locked(cache, (unsigned)size_class, bytes, &every);
    hak_lock_drop(&cache->lock);
    hak_timing_end_for(HAK_TIMING_refill, begin, hak_cache_group(cache));
    if (HAK_UNLIKELY(block == NULL)) {
        block = malloc_again(cache, request, (unsigned)size_class);
    } else {
        malloc_sampled(block, request, every);
    }
    return block != NULL ? zero_if_ruled(block, size_class, ways) : NULL;
}

void *hak_malloc_slow_for(size_t bytes,
                          size_t size_class,
                          struct hak_cache *cache,
                          const void *site)
{
    struct hak_hardened *hardened = hak_hardened_enter(cache);
    if (HAK_UNLIKELY(hardened != NULL)) {
        return hak_hardened_malloc(bytes, size_class, site, cache, hardened);
    }
    hak_hardened_leave(cache);
    return hak_malloc_slowest(bytes, size_class, site);
}

void *hak_malloc_slow(size_t bytes, size_t size_class, struct hak_cache *cache)
{
    return hak_malloc_slow_for(bytes, size_class, cache, HAK_SITE);
}

// Into a full magazine of one of the thread's caches.
static void free_own(struct hak_cache *cache, unsigned size_class, void *block)
{
    const uint64_t begin = hak_timing_begin();
    hak_watch_follow(cache);
    hak_sampler_follow(cache);
    hak_lock_take(&cache->lock);
    hak_count(&cache->events, 1);
    const size_t before = cache->returned_bytes;
    hak_magazine_spill(cache, size_class, block);
    const size_t returned = cache->returned_bytes; // may be all that is left of pages nobody uses
    const bool is_much =
        returned / HAK_UNIT_BYTES != before / HAK_UNIT_BYTES; // since the last time
    hak_sweep_if_due_locked(cache);
    hak_lock_drop(&cache->lock);
    hak_timing_end_for(HAK_TIMING_spill, begin, hak_cache_group(cache));
    if (is_much) {
        hak_sweep_wanted(returned);
    }
}

static HAK_NOINLINE void free_unusual(void *block, uint32_t entry)
{
    struct hak_cache *cache = hak_cache_self;
    const unsigned size_class = HAK_MAP_CLASS(entry);
    if (block == NULL) {
        return;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(block);
        if (cache == NULL) {
            cache = &hak_cache_late; // no memory for a cache: without one, then
        }
    }
    if (direct_came_late(cache)) {
        hak_start_direct(cache);
    }
    struct hak_cache *own;
    hak_sampler_follow(cache);
    if (hak_guard_owns(block)) {
        hak_guard_put(block, HAK_SITE); // the program's call: all between are tail calls
    } else if (hak_nested_owns(block)) {
        hak_nested_free(block);
    } else if (!hak_map_is_small(entry)) {
        const uint64_t begin = hak_timing_begin();
        hak_large_free(hak_site_keeper(cache), block, entry);
        hak_timing_end(HAK_TIMING_large_free, begin);
    } else if (HAK_UNLIKELY(cache->is_direct)) {
        hak_direct_put(cache, block);
    } else if ((own = hak_site_own(cache, HAK_MAP_TAG(entry))) != NULL) {
        free_own(own, size_class, block);
    } else {
        const uint64_t begin = hak_timing_begin();
        const bool has_sent = hak_inbox_post(cache, block, entry);
        hak_timing_end(HAK_TIMING_parcel, begin);
        if (has_sent) {
            hak_sweep_wanted(0);
        }
    }
}

// A block of a slab that has samples, maybe one of them. All its blocks come here, and most are free
// again in a moment: the short ways, once more. `entry`: without the mark.
static HAK_NOINLINE void free_in_sampled(void *block, struct hak_cache *cache, uint32_t entry)
{
    hak_sample_end(block);
    const uint32_t top_number = entry - hak_cache_hit_tag(cache);
    const bool is_done = top_number < HAK_TOPS ? hak_cache_push_into(cache, top_number, block)
                                               : hak_inbox_add(cache, block, entry);
    if (!is_done) {
        free_unusual(block, entry);
    }
}

// A small block of one of the thread's companions, into a magazine that has room. A slab with samples is
// no cache's here: its entry is marked.
static bool free_companion(struct hak_cache *cache, void *block)
{
    struct hak_cache *own = hak_site_own(cache, HAK_MAP_TAG(hak_map_entry(block)));
    return own != NULL && hak_cache_push(own, block);
}

// Never by a parcel, even if one is open for its owner: nobody looks at what goes into parcels.
void hak_free_direct(void *block)
{
    const uint32_t entry = hak_map_entry(block);
    if (HAK_UNLIKELY(hak_map_is_sampled(entry))) {
        hak_sample_end(block);
    }
    free_unusual(block, hak_map_is_sampled(entry) ? entry & ~HAK_MAP_SAMPLED : entry);
}

// All that is neither kept nor put into a parcel.
static HAK_NOINLINE void free_seldom(void *block, struct hak_cache *cache, uint32_t entry)
{
    if (hak_is_dying()) {
        return;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody) && hak_is_nested) {
        hak_nested_free(block);
    } else if (HAK_UNLIKELY(hak_map_is_sampled(entry))) {
        free_in_sampled(block, cache, entry & ~HAK_MAP_SAMPLED);
    } else {
        free_unusual(block, entry);
    }
}

// In the order of what a busy program needs fast: a large block that finds its place in the
// cache, a block of another owner, and the rest.
HAK_INLINE void free_usual(void *block, struct hak_cache *cache)
{
    if (hak_large_keep(cache, block)) {
        return;
    }
    const uint32_t entry = hak_map_entry(block);
    if (!hak_inbox_add(cache, block, entry)) {
        free_seldom(block, cache, entry);
    }
}

static HAK_NOINLINE void free_apart(void *block, struct hak_cache *cache)
{
    if (hak_is_dying()) {
        return;
    }
    hak_watch_follow(cache);
    struct hak_hardened *hardened = hak_hardened_enter(cache);
    if (hardened != NULL) {
        hak_hardened_free(block, cache, hardened);
        return;
    }
    hak_hardened_leave(cache);
    if (cache->is_direct) {
        hak_free_direct(block);
    } else if (!free_companion(cache, block)) {
        free_usual(block, cache);
    }
}

// One check, and tail calls: these 40 instructions are what freeing for others and BigCache cost.
void hak_free_slow(void *block, struct hak_cache *cache)
{
    if (HAK_UNLIKELY(cache->frees_apart || hak_load_relaxed(&cache->is_asleep))) {
        free_apart(block, cache);
    } else {
        free_usual(block, cache);
    }
}
