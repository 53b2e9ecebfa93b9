// hooks_core.c -- the hooks of slab/hooks.h and cache/hooks.h in a build of the core alone (CMake's HAKMEM_CORE), without features.

#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/refill.h"
#include "cache/slow.h"
#include "cache/take.h"
#include "owner/slabs.h"
#include "slab/hooks.h"

// The hooks of a missing feature do nothing, or return this answer.
#define NOTHING(name, ...) \
    void name(__VA_ARGS__) \
    {                      \
    }
#define ANSWER(answer, result, name, ...) \
    result name(__VA_ARGS__)              \
    {                                     \
        return answer;                    \
    }

// clang-format off
ANSWER(false, bool, hak_hook_hardens, void)
NOTHING(hak_hook_slab_made, struct hak_run *slab)
NOTHING(hak_hook_slab_ends, struct hak_run *slab)
NOTHING(hak_hook_slab_purged, const struct hak_run *slab)
ANSWER(0, uint64_t, hak_hook_slab_chance, void)
ANSWER(0, unsigned, hak_hook_slab_draw, uint64_t *chance, unsigned blocks)
ANSWER(out, uint64_t, hak_hook_slab_out, const struct hak_run *slab, unsigned word, uint64_t out)
NOTHING(hak_hook_inset_ends, void)
ANSWER(true, bool, hak_hook_superslabs, char *base, size_t bytes)
NOTHING(hak_hook_share_locked, const struct hak_share *share)
ANSWER(true, bool, hak_hook_may_map_locked, size_t bytes)
ANSWER(true, bool, hak_hook_may_use_locked, size_t bytes)
NOTHING(hak_hook_sweeps_everything, void)
NOTHING(hak_hook_swept_everything, void)
ANSWER(NULL, struct hak_run *, hak_hook_inset_map, size_t bytes, size_t alignment)
NOTHING(hak_hook_inset_freed, struct hak_run *run)
ANSWER(false, bool, hak_hook_inset_resize, struct hak_run *run, size_t bytes)
NOTHING(hak_hook_inset_leave_room, struct hak_run *run)
NOTHING(hak_hook_taken, void *block, struct hak_request request, size_t note)
ANSWER(false, bool, hak_hook_refuses, struct hak_request request)
NOTHING(hak_hook_refused, enum hak_refuse_reason reason, struct hak_request request, uint64_t mark)
ANSWER(most, uint32_t, hak_hook_refill,
       const struct hak_cache *cache, unsigned size_class, uint32_t most)
ANSWER(0, unsigned, hak_hook_ways, const void *site)
ANSWER(NULL, void *, hak_hook_reuse, size_t bytes, const void *site)
ANSWER(block, void *, hak_hook_counted,
       struct hak_cache *cache, void *block, size_t bytes, const void *site)
NOTHING(hak_hook_large, void *block, struct hak_request request)
NOTHING(hak_hook_large_ends, struct hak_run *run)
NOTHING(hak_hook_forget_slab, const struct hak_run *slab)
ANSWER(false, bool, hak_hook_freed,
       void *block, uint32_t entry, struct hak_cache *cache, const void *site)
ANSWER(cache, struct hak_cache *, hak_hook_keeper, struct hak_cache *cache)
ANSWER(block_bytes, size_t, hak_hook_usable, const void *block, size_t block_bytes)
ANSWER(HAK_RESIZED_AS_USUAL, enum hak_resized, hak_hook_resize, void *block, size_t bytes)
ANSWER(false, bool, hak_hook_owns, const void *block)
ANSWER(0, size_t, hak_hook_owned_bytes, const void *block)
NOTHING(hak_hook_follow, struct hak_cache *cache)
NOTHING(hak_hook_forked, struct hak_cache *cache)
ANSWER(cache == hak_cache_self, bool, hak_hook_is_own, const struct hak_cache *cache)
NOTHING(hak_hook_flush, struct hak_cache *cache)
ANSWER(true, bool, hak_hook_empty, struct hak_cache *cache)
NOTHING(hak_hook_forget, struct hak_cache *cache)
NOTHING(hak_hook_rest, struct hak_cache *cache)
ANSWER(true, bool, hak_hook_is_bare, struct hak_cache *cache)
ANSWER(0, uint64_t, hak_hook_events, struct hak_cache *cache)
NOTHING(hak_hook_start, void)
NOTHING(hak_hook_started, void)
NOTHING(hak_hook_stopping, void)
NOTHING(hak_hook_check, void)
ANSWER(NULL, struct hak_lock *, hak_hook_lock, void)
// clang-format on

bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes)
{
    shard->credit_bytes = SIZE_MAX / 2; // more than a process hands out
    return true;
}

void *hak_hook_malloc(
    size_t bytes, size_t size_class, struct hak_cache *cache, const void *site, size_t alignment)
{
    return hak_slow_malloc((struct hak_request){bytes, alignment, site}, size_class);
}

void *hak_hook_take(struct hak_cache *cache, unsigned size_class, size_t bytes, size_t *note)
    HAK_REQUIRES(&cache->owner.lock)
{
    *note = 0;
    if (cache->is_direct) {
        return hak_take_one(cache, size_class);
    }
    void *block = hak_cache_pop(cache, size_class); // left by the cache's earlier thread
    return block != NULL ? block : hak_refill(cache, size_class);
}

void hak_hook_free(void *block, struct hak_cache *cache)
{
    hak_slow_free(block, cache);
}

void hak_hook_free_marked(void *block, struct hak_cache *cache, uint32_t entry)
{
    hak_slow_free_rest(block, entry);
}

void hak_hook_put(struct hak_cache *cache,
                  struct hak_owner *owner,
                  struct hak_run *slab,
                  void *block) HAK_UNPROVEN
{
    hak_slabs_put(owner, slab, block);
    hak_lock_drop(&owner->lock);
}
