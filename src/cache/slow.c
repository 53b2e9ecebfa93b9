// slow.c -- see slow.h.
#include "cache/slow.h"

#include "base/timing.h"
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
#include "cache/small.h"
#include "cache/start.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "owner/owner.h"

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
    if (hak_dying_now()) {
        return hak_dying_take(request);
    }
    return hak_is_nested ? hak_nested_alloc(request) : hak_refuse_memory(request, 0);
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
        return hak_small_take(cache, request, served);
    }
    return served < HAK_SMALL_CLASSES
               ? hak_cache_alloc_for(cache, request.bytes, served, request.alignment, request.site)
               : hak_small_take_large(cache, request);
}

void *hak_malloc_slow(size_t bytes, size_t size_class, struct hak_cache *cache)
{
    return hak_hook_malloc(bytes, size_class, cache, HAK_SITE, HAK_MALLOC_ALIGNMENT);
}

// Looks at the budget also if a slab was retired: when blocks are freed in no order, the last few thousand retire nearly all slabs.
void hak_slow_put(struct hak_cache *cache, unsigned size_class, void *block)
{
    const uint64_t begin = hak_timing_begin();
    hak_sweeper_follow(cache);
    hak_lock_take(&cache->owner.lock);
    hak_count(&cache->owner.events, 1);
    const _Atomic(uint64_t) *ended_slabs = &cache->owner.classes[size_class].ended_slabs;
    const uint64_t ended = hak_load_relaxed(ended_slabs);
    const _Atomic(uint64_t) *spilled_blocks = &cache->magazines[size_class].counts.spilled_blocks;
    const uint64_t spilled = hak_load_relaxed(spilled_blocks);
    const size_t before = cache->owner.returned_bytes;
    hak_magazine_spill(cache, size_class, block);
    const size_t returned = cache->owner.returned_bytes; // may leave whole pages free
    const bool is_much = returned / HAK_UNIT_BYTES != before / HAK_UNIT_BYTES ||
                         hak_load_relaxed(ended_slabs) != ended;
    hak_sweep_cache_if_due_locked(
        cache, size_class, (uint32_t)(hak_load_relaxed(spilled_blocks) - spilled));
    hak_lock_drop(&cache->owner.lock);
    hak_timing_end_for(HAK_TIMING_spill, begin, hak_cache_group(cache));
    if (is_much) {
        hak_sweeper_wanted(returned);
    }
}

// Looks up the owner first: once the block is posted, its slab may be retired at any moment.
static void post(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint64_t begin = hak_timing_begin();
    struct hak_owner *owner = hak_owner_of(block);
    const bool has_sent = hak_reclaim_or_post(cache, block, entry);
    hak_timing_end(HAK_TIMING_parcel, begin);
    if (has_sent) {
        if (owner != NULL) {
            hak_sweep_cache_slabs_if_due(owner);
        }
        hak_sweeper_wanted(0);
    }
}

static void free_large(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint64_t begin = hak_timing_begin();
    hak_large_free(hak_hook_keeper(cache), block, entry);
    hak_timing_end(HAK_TIMING_large_free, begin);
}

// HAK_SITE is the program's call here, because all calls between are tail calls.
HAK_NOINLINE void hak_slow_free_rest(void *block, uint32_t entry)
{
    struct hak_cache *cache = hak_cache_self;
    if (block == NULL) {
        return;
    }
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(block);
        if (cache == NULL) {
            cache = &hak_cache_shared; // the thread can have none now
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

// The slow part of free: a block that went neither into BigCache, nor into a magazine as a remote free, nor into an open parcel.
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

// First what a busy program needs fast: a large block whose place in BigCache is empty, then a
// remote free, then the rest.
HAK_INLINE void free_usual(void *block, struct hak_cache *cache)
{
    if (hak_large_keep(cache, block)) {
        return;
    }
    const uint32_t entry = hak_map_entry(block);
    if (!hak_remote_keep(cache, block, entry) && !hak_remote_add(cache, block, entry)) {
        free_seldom(block, cache, entry);
    }
}

// A cache without magazines sends no parcels, because blocks in parcels are not checked.
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

// Makes only tail calls, because each free of mode secure comes this way.
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

// One check, then tail calls: these 40 instructions are the cost of remote frees and of BigCache.
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
