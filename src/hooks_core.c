// hooks_core.c -- the hooks of slab/hooks.h and cache/hooks.h in a build of the core alone (CMake's HAKMEM_CORE): no feature has a say.

#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/refill.h"
#include "cache/slow.h"
#include "cache/take.h"
#include "owner/slabs.h"
#include "slab/hooks.h"

bool hak_hook_hardens(void)
{
    return false;
}

void hak_hook_slab_made(struct hak_run *slab)
{
}

void hak_hook_slab_ends(struct hak_run *slab)
{
}

void hak_hook_slab_purged(const struct hak_run *slab)
{
}

uint64_t hak_hook_slab_chance(void)
{
    return 0;
}

unsigned hak_hook_slab_draw(uint64_t *chance, unsigned blocks)
{
    return 0;
}

uint64_t hak_hook_slab_out(const struct hak_run *slab, unsigned word, uint64_t out)
{
    return out;
}

void hak_hook_inset_ends(void)
{
}

bool hak_hook_superslabs(char *base, size_t bytes)
{
    return true;
}

void hak_hook_share_locked(const struct hak_share *share)
{
}

bool hak_hook_may_map_locked(size_t bytes)
{
    return true;
}

bool hak_hook_may_use_locked(size_t bytes)
{
    return true;
}

bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes)
{
    shard->credit_bytes = SIZE_MAX / 2; // more than a process hands out
    return true;
}

void hak_hook_sweeps_everything(void)
{
}

void hak_hook_swept_everything(void)
{
}

struct hak_run *hak_hook_inset_map(size_t bytes, size_t alignment)
{
    return NULL;
}

void hak_hook_inset_freed(struct hak_run *run)
{
}

bool hak_hook_inset_resize(struct hak_run *run, size_t bytes)
{
    return false;
}

void hak_hook_inset_leave_room(struct hak_run *run)
{
}

void *hak_hook_malloc(
    size_t bytes, size_t size_class, struct hak_cache *cache, const void *site, size_t alignment)
{
    return hak_slow_malloc((struct hak_request){bytes, alignment, site}, size_class);
}

void *hak_hook_malloc_seldom(struct hak_request request, size_t size_class)
{
    return hak_slow_malloc(request, size_class);
}

void *hak_hook_take(struct hak_cache *cache, unsigned size_class, size_t bytes, size_t *note)
    HAK_REQUIRES(&cache->owner.lock)
{
    *note = 0;
    if (cache->is_direct) {
        return hak_take_one(cache, size_class);
    }
    void *block = hak_cache_pop(cache, size_class); // of the cache's earlier thread
    return block != NULL ? block : hak_refill(cache, size_class);
}

void hak_hook_taken(void *block, struct hak_request request, size_t note)
{
}

bool hak_hook_refuses(struct hak_request request)
{
    return false;
}

void hak_hook_refused(enum hak_refuse_reason reason, struct hak_request request, uint64_t mark)
{
}

uint32_t hak_hook_refill(const struct hak_cache *cache, unsigned size_class, uint32_t most)
{
    return most;
}

unsigned hak_hook_ways(const void *site)
{
    return 0;
}

void *hak_hook_reuse(size_t bytes, const void *site)
{
    return NULL;
}

void *hak_hook_counted(struct hak_cache *cache, void *block, size_t bytes, const void *site)
{
    return block;
}

void hak_hook_large(void *block, struct hak_request request)
{
}

void hak_hook_large_ends(struct hak_run *run)
{
}

void hak_hook_forget_slab(const struct hak_run *slab)
{
}

void hak_hook_free(void *block, struct hak_cache *cache)
{
    hak_slow_free(block, cache);
}

void hak_hook_free_marked(void *block, struct hak_cache *cache, uint32_t entry)
{
    hak_slow_free_rest(block, entry);
}

bool hak_hook_freed(void *block, uint32_t entry, struct hak_cache *cache, const void *site)
{
    return false;
}

void hak_hook_put(struct hak_cache *cache,
                  struct hak_owner *owner,
                  struct hak_run *slab,
                  void *block) HAK_UNPROVEN
{
    hak_slabs_put(owner, slab, block);
    hak_lock_drop(&owner->lock);
}

struct hak_cache *hak_hook_keeper(struct hak_cache *cache)
{
    return cache;
}

size_t hak_hook_usable(const void *block, size_t block_bytes)
{
    return block_bytes;
}

enum hak_resized hak_hook_resize(void *block, size_t bytes)
{
    return HAK_RESIZED_AS_USUAL;
}

bool hak_hook_owns(const void *block)
{
    return false;
}

size_t hak_hook_owned_bytes(const void *block)
{
    return 0;
}

void hak_hook_follow(struct hak_cache *cache)
{
}

void hak_hook_end(struct hak_cache *cache)
{
}

void hak_hook_forked(struct hak_cache *cache)
{
}

bool hak_hook_is_own(const struct hak_cache *cache)
{
    return cache == hak_cache_self;
}

void hak_hook_flush(struct hak_cache *cache)
{
}

bool hak_hook_empty(struct hak_cache *cache)
{
    return true;
}

void hak_hook_forget(struct hak_cache *cache)
{
}

void hak_hook_rest(struct hak_cache *cache)
{
}

bool hak_hook_is_bare(struct hak_cache *cache)
{
    return true;
}

uint64_t hak_hook_events(struct hak_cache *cache)
{
    return 0;
}

void hak_hook_start(void)
{
}

void hak_hook_started(void)
{
}

void hak_hook_stopping(void)
{
}

void hak_hook_check(void)
{
}

struct hak_lock *hak_hook_lock(void)
{
    return NULL;
}
