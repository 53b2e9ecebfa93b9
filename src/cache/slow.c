// slow.c -- see slow.h.
#include "cache/slow.h"

#include "base/timing.h"
#include "cache/bigcache.h"
#include "cache/direct.h"
#include "cache/dying.h"
#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/nested.h"
#include "cache/pools.h"
#include "cache/reclaim.h"
#include "cache/refuse.h"
#include "cache/remote.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "cache/take.h"
#include "os/refusal.h"
#include "slab/arena.h"
#include "slab/feed.h"

struct hak_cache *hak_slow_cache(void)
{
    struct hak_cache *cache = hak_cache_self;
    if (hak_dying_now()) {
        return NULL;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(NULL);
    } else {
        hak_sweeper_start_if_owed();
    }
    if (HAK_LIKELY(cache != NULL)) {
        hak_nested_free_waiting();
    }
    return cache;
}

void *hak_slow_without_cache(struct hak_request request)
{
    if (!hak_dying_now() && !hak_is_nested) {
        return hak_refuse_memory(request, 0);
    }
    return hak_dying_now() ? hak_dying_take(request) : hak_nested_alloc(request);
}

HAK_INLINE void *take_once(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    size_t note = 0;
    hak_lock_take(&cache->owner.lock);
    hak_count(&cache->owner.events, 1);
    void *block = hak_hook_take(cache, size_class, request.bytes, &note);
    hak_lock_drop(&cache->owner.lock);
    if (HAK_UNLIKELY(note != 0)) {
        hak_hook_taken(block, request, note);
    }
    return block;
}

// Out of slabs that are there, of the class or of one above it with blocks that are so aligned. NULL: none has one to give.
static HAK_COLD void *take_above(struct hak_cache *cache,
                                 struct hak_request request,
                                 unsigned size_class)
{
    void *block = NULL;
    for (unsigned i = size_class; i < HAK_SMALL_CLASSES && block == NULL; i++) {
        const bool fits = hak_classes[i].bytes % request.alignment == 0 && hak_pools_have(i);
        if (fits && hak_take_has_slab(cache, i)) {
            block = take_once(cache, request, i);
        }
    }
    return block;
}

// Others may take what was shared: as often it is shared again.
enum { SHARED_MOST = 8 };

// Free memory may be nowhere but between blocks in use: of slabs of other threads, or of classes above.
static HAK_COLD void *take_between(struct hak_cache *cache,
                                   struct hak_request request,
                                   unsigned size_class)
{
    hak_pools_go_above();
    void *block = take_above(cache, request, size_class);
    for (unsigned i = 0; block == NULL && i < SHARED_MOST &&
                         hak_reclaim_share(&cache->owner, size_class, request.alignment);
         i++) {
        block = take_above(cache, request, size_class);
    }
    return block;
}

static HAK_COLD void *take_again(struct hak_cache *cache,
                                 struct hak_request request,
                                 unsigned size_class)
{
    const size_t slab_bytes = hak_classes[size_class].units * HAK_UNIT_BYTES;
    struct hak_cache *own =
        hak_cache_self != &hak_cache_nobody ? hak_cache_self : &hak_cache_shared;
    uint64_t mark;
    void *block;
    unsigned tries = 0;
    do {
        hak_sweep_everything();
        mark = hak_refusal_mark();
        block = take_once(cache, request, size_class);
    } while (block == NULL && ++tries < HAK_ROOM_TRIES && hak_arena_has_room_soon(slab_bytes));
    if (block == NULL && hak_arena_has_unit() && hak_feed_pool(hak_arena_shard(cache->owner.tag))) {
        block = take_once(cache, request, size_class);
    }
    block = block != NULL ? block : take_between(cache, request, size_class);
    if (block == NULL && own != cache &&
        cache->owner.has_thread) { // a rule's: it takes no slabs of others
        block = take_between(own, request, size_class);
    }
    if (block != NULL) {
        return block;
    }
    // Where there is no row of units that is long enough for a slab, or no memory for what describes one, there may be a unit: a
    // large block serves then.
    return hak_classes[size_class].units != 1 || hak_arena_has_unit()
               ? hak_slow_take_large(own, request)
               : hak_refuse_memory(request, mark);
}

void *hak_slow_take(struct hak_cache *cache, struct hak_request request, unsigned size_class)
{
    const uint64_t begin = hak_timing_begin();
    void *block = take_once(cache, request, size_class);
    hak_timing_end_for(HAK_TIMING_refill, begin, hak_cache_group(cache));
    return HAK_LIKELY(block != NULL) ? block : take_again(cache, request, size_class);
}

void *hak_slow_take_of_heap(struct hak_cache *heap, struct hak_request request, unsigned size_class)
{
    void *block = take_once(heap, request, size_class);
    if (HAK_LIKELY(block != NULL)) {
        return block;
    }
    block = take_again(heap, request, size_class);
    if (block != NULL && hak_map_is_large(hak_map_entry(block))) {
        hak_large_belongs(block, heap);
    }
    return block;
}

void *hak_slow_take_large(struct hak_cache *cache, struct hak_request request)
{
    void *block = hak_bigcache_reuse(cache, hak_size_class_bin(HAK_SMALL_MAX + 1));
    if (block == NULL) {
        return hak_large_serve(cache, request, 1, NULL);
    }
    hak_hook_large(block, request);
    return block;
}

void *hak_slow_malloc(struct hak_request request, size_t size_class)
{
    struct hak_cache *cache = hak_slow_cache();
    if (HAK_UNLIKELY(cache == NULL)) {
        return hak_slow_without_cache(request);
    }
    hak_direct_follow(cache);
    hak_sweeper_follow(cache);
    const unsigned served = hak_pools_class((unsigned)size_class);
    if (HAK_LIKELY(served == size_class)) {
        return hak_slow_take(cache, request, served);
    }
    return served < HAK_SMALL_CLASSES
               ? hak_cache_alloc_for(cache, request.bytes, served, request.alignment, request.site)
               : hak_slow_take_large(cache, request);
}

void *hak_malloc_slow(size_t bytes, size_t size_class, struct hak_cache *cache)
{
    return hak_hook_malloc(bytes, size_class, cache, HAK_SITE, HAK_MALLOC_ALIGNMENT);
}

void hak_slow_put(struct hak_cache *cache, unsigned size_class, void *block)
{
    const uint64_t begin = hak_timing_begin();
    hak_sweeper_follow(cache);
    hak_lock_take(&cache->owner.lock);
    hak_count(&cache->owner.events, 1);
    const size_t before = cache->owner.returned_bytes;
    hak_magazine_spill(cache, size_class, block);
    const size_t returned =
        cache->owner.returned_bytes; // may be all that is left of pages nobody uses
    const bool is_much =
        returned / HAK_UNIT_BYTES != before / HAK_UNIT_BYTES; // since the last time
    hak_sweep_cache_if_due_locked(cache);
    hak_lock_drop(&cache->owner.lock);
    hak_timing_end_for(HAK_TIMING_spill, begin, hak_cache_group(cache));
    if (is_much) {
        hak_sweeper_wanted(returned);
    }
}

static void post(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint64_t begin = hak_timing_begin();
    const bool has_sent = hak_reclaim_or_post(cache, block, entry);
    hak_timing_end(HAK_TIMING_parcel, begin);
    if (has_sent) {
        hak_sweeper_wanted(0);
    }
}

static void free_large(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint64_t begin = hak_timing_begin();
    hak_large_free(hak_hook_keeper(cache), block, entry);
    hak_timing_end(HAK_TIMING_large_free, begin);
}

// `site` of the hook: the program's call, as all between are tail calls.
HAK_NOINLINE void hak_slow_free_rest(void *block, uint32_t entry)
{
    struct hak_cache *cache = hak_cache_self;
    if (block == NULL) {
        return;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(block);
        if (cache == NULL) {
            cache = &hak_cache_shared; // it can have none now
        }
    }
    hak_direct_follow(cache);
    if (hak_hook_freed(block, entry, cache, HAK_SITE)) {
        return;
    }
    if (hak_nested_owns(block)) {
        hak_nested_free(block);
    } else if (!hak_map_is_small(entry)) {
        free_large(cache, block, entry);
    } else if (HAK_UNLIKELY(cache->is_direct)) {
        hak_direct_put(cache, block);
    } else if (HAK_MAP_TAG(entry) == cache->owner.tag) {
        hak_slow_put(cache, HAK_MAP_CLASS(entry), block);
    } else {
        post(cache, block, entry);
    }
}

// All but a large block that BigCache has taken, and a block of another owner that an open parcel has.
static HAK_NOINLINE void free_seldom(void *block, struct hak_cache *cache, uint32_t entry)
{
    if (hak_dying_now()) {
        return;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody) && hak_is_nested) {
        hak_nested_free(block);
    } else if (HAK_UNLIKELY(hak_map_is_sampled(entry))) {
        hak_hook_free_marked(block, cache, entry & ~HAK_MAP_SAMPLED);
    } else {
        hak_slow_free_rest(block, entry);
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
    if (!hak_remote_add(cache, block, entry)) {
        free_seldom(block, cache, entry);
    }
}

// A cache without magazines sends nothing: nobody looks at what goes into parcels.
void hak_slow_free(void *block, struct hak_cache *cache)
{
    if (cache->is_direct) {
        hak_slow_free_rest(block, hak_map_entry(block));
    } else {
        free_usual(block, cache);
    }
}

static HAK_NOINLINE void wake_and_free(void *block, struct hak_cache *cache)
{
    hak_sweeper_wake(cache);
    hak_hook_free(block, cache);
}

// All that it does are tail calls: each free of mode secure comes this way.
static HAK_NOINLINE void free_apart(void *block, struct hak_cache *cache)
{
    if (hak_dying_now()) {
        return;
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->is_asleep))) {
        wake_and_free(block, cache);
    } else {
        hak_hook_free(block, cache);
    }
}

// One check, and tail calls: these 40 instructions are what freeing for others and BigCache cost.
void hak_free_slow(void *block, struct hak_cache *cache)
{
    const unsigned is_unusual =
        hak_load_relaxed(&cache->frees_apart) | hak_load_relaxed(&cache->is_asleep);
    if (HAK_UNLIKELY(is_unusual != 0)) {
        free_apart(block, cache);
    } else {
        free_usual(block, cache);
    }
}
