// slow.c -- what the fast paths fall back to.
#include <errno.h>

#include "base/options.h"
#include "cache/fast_path.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "cache/thread.h"
#include "slab/misuse.h"

// Does option check stand, and was this cache made before it was known?
static bool check_came_late(const struct hak_cache *cache)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_options.check) != 0) && !cache->is_direct;
}

static void *malloc_locked(struct hak_cache *cache, unsigned size_class)
{
    return cache->is_direct ? hak_cache_take(cache, size_class)
                            : hak_magazine_refill(cache, size_class);
}

void *hak_malloc_slow(size_t size_class)
{
    struct hak_cache *cache = hak_cache_self;
    if (HAK_UNLIKELY(cache == &hak_cache_nobody)) {
        cache = hak_start_thread(NULL);
        if (cache == NULL) {
            errno = ENOMEM;
            return NULL;
        }
    }
    if (check_came_late(cache)) {
        hak_start_check(cache);
    }
    if (hak_place_load(hak_load_relaxed(&cache->top[size_class]) - 1) != NULL) {
        return hak_cache_alloc(cache, size_class); // the cache of an earlier thread
    }
    hak_lock_take(&cache->lock);
    hak_count(&cache->events, 1);
    void *block = malloc_locked(cache, (unsigned)size_class);
    hak_lock_drop(&cache->lock);
    if (HAK_UNLIKELY(block == NULL)) {
        hak_sweep_everything();
        hak_lock_take(&cache->lock);
        block = malloc_locked(cache, (unsigned)size_class);
        hak_lock_drop(&cache->lock);
    }
    if (HAK_UNLIKELY(block == NULL)) {
        errno = ENOMEM;
    }
    return block;
}

static HAK_NOINLINE void free_slowest(void *block, uint32_t entry)
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
    if (check_came_late(cache)) {
        hak_start_check(cache);
    }
    if (!hak_map_is_small(entry)) {
        hak_large_free(cache, block, entry);
    } else if (HAK_UNLIKELY(cache->is_direct)) {
        hak_inbox_put_direct(block);
    } else if (HAK_MAP_TAG(entry) == cache->tag) {
        hak_lock_take(&cache->lock);
        hak_count(&cache->events, 1);
        hak_magazine_spill(cache, size_class, block);
        hak_lock_drop(&cache->lock);
        hak_sweep_wanted(0);
    } else {
        hak_inbox_post(cache, block, entry);
    }
}

// In the order of what a busy program needs fast: a large block that finds its place in the
// cache, a block of another owner, and the rest.
void hak_free_slow(void *block, struct hak_cache *cache)
{
    if (hak_large_keep(cache, block)) {
        return;
    }
    const uint32_t entry = hak_map_entry(block);
    if (!hak_inbox_add(cache, block, entry)) {
        free_slowest(block, entry);
    }
}
