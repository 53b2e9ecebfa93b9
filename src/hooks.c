// hooks.c -- hooks of slab/hooks.h and cache/hooks.h in which several features have a part; may include all layers, like hakmem.c.
#include "cache/hooks.h"

#include <string.h>

#include "cache/bigcache.h"
#include "cache/direct.h"
#include "cache/fast_path.h"
#include "cache/nested.h"
#include "cache/pools.h"
#include "cache/refill.h"
#include "cache/refuse.h"
#include "cache/remote.h"
#include "cache/seen.h"
#include "cache/slow.h"
#include "cache/small.h"
#include "cache/sweeper.h"
#include "cache/take.h"
#include "failures/failure.h"
#include "policy/experiment.h"
#include "policy/response.h"
#include "policy/tuner.h"
#include "profile/sample.h"
#include "profile/sampler.h"
#include "rules/site.h"
#include "rules/site_rules.h"
#include "secure/guard.h"
#include "secure/harden.h"
#include "secure/hardened.h"
#include "secure/states.h"
#include "slab/hooks.h"

// ---- slabs and the memory they lie in ----

bool hak_hook_hardens(void)
{
    return hak_harden.is_on;
}

void hak_hook_slab_made(struct hak_run *slab)
{
    if (hak_harden.checks.zero && !slab->zeroed) {
        memset(slab->base, 0, slab->units * HAK_UNIT_BYTES);
    }
}

// The last check of the slab's blocks, and of the bytes behind the last one. (When a heap ends, some of its blocks are in use.)
void hak_hook_slab_ends(struct hak_run *slab)
{
    if (hak_states_exist(slab)) {
        slab->zeroed = hak_states_check(slab);
        hak_states_untag(slab);
    }
}

// The last chance to find writes after a free: the purge removes them.
void hak_hook_slab_purged(const struct hak_run *slab)
{
    if (hak_states_exist(slab)) {
        hak_states_check(slab);
    }
}

uint64_t hak_hook_slab_chance(void)
{
    return hak_harden.random_order ? hak_harden_seed() | 1 : 0;
}

unsigned hak_hook_slab_draw(uint64_t *chance, unsigned blocks)
{
    return (unsigned)((hak_harden_next(chance) >> 32) * blocks >> 32);
}

uint64_t hak_hook_slab_out(const struct hak_run *slab, unsigned word, uint64_t out)
{
    return hak_states_exist(slab) ? hak_states_out(slab, word) : out;
}

bool hak_hook_superslabs(char *base, size_t bytes)
{
    return !hak_harden_has_tags() || hak_tags_map(base, bytes);
}

// ---- malloc ----

void *hak_hook_malloc(
    size_t bytes, size_t size_class, struct hak_cache *cache, const void *site, size_t alignment)
{
    struct hak_hardened *hardened = hak_hardened_enter(cache);
    if (HAK_UNLIKELY(hardened != NULL)) {
        return hak_hardened_malloc(bytes, size_class, site, cache, hardened, alignment);
    }
    hak_hardened_leave(cache);
    return hak_hardened_malloc_unusual((struct hak_request){bytes, alignment, site}, size_class);
}

// The class that serves a request; HAK_SMALL_CLASSES: a large block serves it.
static unsigned class_serving(const struct hak_cache *cache, unsigned size_class, size_t bytes)
{
    if (HAK_UNLIKELY(cache->is_direct)) {
        size_class = hak_hardened_class(size_class, bytes);
    }
    return size_class < HAK_SMALL_CLASSES ? hak_pools_class(size_class) : size_class;
}

// Site rules: the block comes from the rule's cache, in a class with the rule's alignment.
static HAK_NOINLINE void *take_ruled(struct hak_cache *cache,
                                     struct hak_request request,
                                     size_t size_class,
                                     unsigned ways)
{
    const size_t ruled = (size_t)1 << HAK_WAYS_ALIGN_LOG2(ways);
    request.alignment = ruled > request.alignment ? ruled : request.alignment;
    cache = hak_site_cache(cache, &size_class, ways);
    hak_sampler_follow(cache);
    void *block = hak_cache_pop(cache, size_class);
    if (block == NULL) {
        block = hak_small_take(cache, request, (unsigned)size_class);
    }
    return block != NULL && (ways & HAK_WAY_ZERO) != 0 ? memset(block, 0, request.bytes) : block;
}

void *hak_hardened_malloc_unusual(struct hak_request request, size_t size_class)
{
    struct hak_cache *cache = hak_slow_cache();
    if (HAK_UNLIKELY(cache == NULL)) {
        return hak_slow_without_cache(request);
    }
    if (HAK_UNLIKELY(cache->magazines[size_class].is_ruled)) {
        void *block = hak_site_pop(cache, size_class, request.site);
        if (HAK_LIKELY(block != NULL)) {
            return block;
        }
    }
    hak_direct_follow(cache);
    hak_sweeper_follow(cache);
    hak_sampler_follow(cache);
    const unsigned served = class_serving(cache, (unsigned)size_class, request.bytes);
    if (HAK_UNLIKELY(served != size_class && served < HAK_SMALL_CLASSES)) {
        return hak_cache_alloc_for(cache, request.bytes, served, request.alignment, request.site);
    }
    if (HAK_UNLIKELY(cache->is_direct) && hak_hook_refuses(request)) {
        return hak_refuse(HAK_REFUSE_INJECTED, request);
    }
    const bool has_rules = hak_site_has_rules();
    const unsigned ways = HAK_UNLIKELY(has_rules) ? hak_site_ways(request.site) : 0;
    if (hak_guard_is_due(cache)) {
        const size_t alignment = (size_t)1 << HAK_WAYS_ALIGN_LOG2(ways);
        void *guarded = hak_guard_take((struct hak_request){request.bytes, alignment, request.site},
                                       (unsigned)size_class);
        if (guarded != NULL) {
            hak_sample_draw_apart(guarded, request, hak_classes[size_class].bytes);
            return guarded;
        }
    }
    if (HAK_UNLIKELY(served != size_class)) {
        return hak_small_take_large(cache, request);
    }
    return HAK_UNLIKELY(has_rules) ? take_ruled(cache, request, size_class, ways)
                                   : hak_small_take(cache, request, served);
}

static void *take_from_magazine(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    // The magazine may have blocks: the next one is a sample, or the cache was an earlier thread's.
    void *block = hak_cache_pop(cache, hak_cache_top_number(cache, size_class));
    return block != NULL ? block : hak_refill(cache, size_class);
}

static void *take_direct(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock)
{
    return hak_harden.sees_all ? hak_hardened_refill(cache, size_class, bytes)
                               : hak_take_one(cache, size_class);
}

// `note`: if the block is a sample, one in how many bytes is one; else 0.
void *hak_hook_take(struct hak_cache *cache, unsigned size_class, size_t bytes, size_t *note)
    HAK_REQUIRES(&cache->owner.lock)
{
    void *block = cache->is_direct ? take_direct(cache, size_class, bytes)
                                   : take_from_magazine(cache, size_class);
    if (block != NULL) {
        *note = hak_sampler_note(cache, size_class);
    }
    return block;
}

bool hak_hook_refuses(struct hak_request request)
{
    return hak_seen_injects() && hak_failure_is_injected(request);
}

// A varying number up to `most` while rules look for their sites: only refills see sites, and no pattern of calls may hide one.
uint32_t hak_hook_refill(const struct hak_cache *cache, unsigned size_class, uint32_t most)
{
    const bool seeks = hak_site_has_rules() && cache->owner.role == HAK_ROLE_THREAD;
    const uint64_t refills = hak_load_relaxed(&cache->magazines[size_class].counts.refills);
    return HAK_UNLIKELY(seeks) ? 1 + (uint32_t)((refills * 0x9E3779B97F4A7C15U >> 32) % most)
                               : most;
}

unsigned hak_hook_ways(const void *site)
{
    return hak_site_has_rules() ? hak_site_ways(site) : 0;
}

// The thread's BigCache may be in a companion.
void *hak_hook_reuse(size_t bytes, const void *site)
{
    struct hak_cache *cache = hak_cache_self;
    if (HAK_LIKELY(!hak_site_has_rules()) || cache == &hak_cache_nobody ||
        hak_site_ways(site) != 0 || hak_load_relaxed(&hak_options.sample_bytes) != 0) {
        return NULL;
    }
    return hak_bigcache_reuse(hak_site_keeper(cache), hak_size_class_bin(bytes));
}

void hak_hook_large_ends(struct hak_run *run)
{
    hak_sample_forget(run->base);
    run->sampled_blocks = 0;
}

// ---- free, realloc and questions about blocks ----

// Put a block of one of the thread's companions into its magazine, if that has room. Not a block of a slab with samples: the mark
// in its map entry keeps the tag from matching.
static bool free_companion(struct hak_cache *cache, void *block)
{
    struct hak_cache *own = hak_site_own(cache, HAK_MAP_TAG(hak_map_entry(block)));
    return own != NULL && hak_cache_push(own, block);
}

// Make the cache follow the options: a thread that uses only large blocks comes to no other slow path.
static HAK_COLD void look_at_options(struct hak_cache *cache)
{
    bool is_needed = cache->is_direct;
    for (unsigned i = 0; i < HAK_COMPANIONS; i++) {
        is_needed |= cache->companions[i] != NULL;
    }
    hak_store_relaxed(&cache->frees_apart, is_needed);
    hak_sampler_follow(cache);
}

static HAK_COLD void look_and_free(void *block, struct hak_cache *cache)
{
    look_at_options(cache);
    hak_hook_free(block, cache);
}

// All its calls are tail calls, because each free of mode secure comes this way.
void hak_hook_free(void *block, struct hak_cache *cache)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->frees_apart) == HAK_FREES_ASKED)) {
        look_and_free(block, cache);
        return;
    }
    struct hak_hardened *hardened = hak_hardened_enter(cache);
    if (hardened != NULL) {
        hak_hardened_free(block, cache, hardened);
        return;
    }
    hak_hardened_leave(cache);
    if (cache->is_direct) {
        hak_hardened_free_unusual(block);
    } else if (!free_companion(cache, block)) {
        hak_slow_free(block, cache);
    }
}

// The block may be a sample. All blocks of its slab come here, and most are free again in a moment, so
// the short ways are tried once more.
void hak_hook_free_marked(void *block, struct hak_cache *cache, uint32_t entry)
{
    hak_sample_end(block);
    const uint32_t top_number = entry - hak_cache_hit_tag(cache);
    const bool is_done = top_number < HAK_TOPS ? hak_cache_push_into(cache, top_number, block)
                                               : hak_remote_add(cache, block, entry);
    if (!is_done) {
        hak_slow_free_rest(block, entry);
    }
}

bool hak_hook_freed(void *block, uint32_t entry, struct hak_cache *cache, const void *site)
{
    hak_sampler_follow(cache);
    if (hak_guard_owns(block)) {
        hak_sample_forget(block);
        hak_guard_put(block, site);
        return true;
    }
    if (HAK_LIKELY(hak_load_relaxed(&cache->frees_apart) == cache->is_direct) ||
        !hak_map_is_small(entry) || hak_nested_owns(block)) {
        return false; // there are no companions, or the block is not theirs
    }
    struct hak_cache *own = hak_site_own(cache, HAK_MAP_TAG(entry));
    if (own == NULL || own == cache) {
        return false;
    }
    hak_sweeper_follow(own); // first: a sleeping cache's hit tag does not say whether it samples
    hak_sampler_follow(own);
    hak_slow_put(own, HAK_MAP_CLASS(entry), block);
    return true;
}

struct hak_cache *hak_hook_keeper(struct hak_cache *cache)
{
    return hak_site_keeper(cache);
}

bool hak_hook_owns(const void *block)
{
    return hak_guard_owns(block);
}

// ---- caches and the process ----

void hak_hook_follow(struct hak_cache *cache)
{
    hak_sampler_follow(cache);
}

// Forget what the thread was doing when it forked: that is not used again.
void hak_hook_forked(struct hak_cache *cache)
{
    memset(cache->companions, 0, sizeof cache->companions);
    hak_store_relaxed(&cache->hardened, NULL);
    hak_hardened_leave(cache);
}

void hak_hook_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    hak_sampler_rest(cache);
    hak_hardened_end(cache);
}

bool hak_hook_is_own(const struct hak_cache *cache)
{
    return hak_site_own(hak_cache_self, cache->owner.tag) != NULL;
}

uint64_t hak_hook_events(struct hak_cache *cache)
{
    const struct hak_hardened *hardened =
        hak_load_acquire(&cache->hardened); // pairs with: hak_hook_empty
    return hardened != NULL ? hak_load_relaxed(&hardened->next) : 0;
}

void hak_hook_start(void)
{
    hak_harden_start();
    hak_seen_all = hak_harden.sees_all;
    hak_seen_behind_bytes = hak_harden.canary_bytes;
    hak_guard_start();
}

void hak_hook_started(void)
{
    hak_site_rules_read();
    hak_response_start();
    hak_tuner_start();
    hak_experiment_start();
}

struct hak_lock *hak_hook_lock(void)
{
    return &hak_samples.lock;
}
