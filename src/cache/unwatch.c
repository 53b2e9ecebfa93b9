// unwatch.c -- see unwatch.h.
#include "cache/unwatch.h"

#include "cache/bigcache.h"
#include "cache/hooks.h"
#include "cache/remote.h"
#include "os/os.h"

static bool has_own_thread(const struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return cache->owner.has_thread && hak_load_relaxed(&cache->owner.state) == HAK_OWNER_LIVE;
}

// May the sweeper stop to watch it, if it has nothing left to give? A thread that looks at each block puts those that it
// frees into its quarantine, which wakes nobody.
static bool may_be_unwatched(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return !has_own_thread(cache) || hak_load_relaxed(&cache->hardened) == NULL;
}

// Step unwatch of watch.pml.
bool hak_unwatch(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock, &cache->owner.lock)
{
    if (!may_be_unwatched(cache)) {
        return false;
    }
    if (has_own_thread(cache)) {
        hak_store_relaxed(&cache->is_asleep, true);
        hak_store_relaxed(&cache->hit_tag, HAK_TAG_ASLEEP);
    }
    hak_sub_relaxed(&hak_watch.count, 1);
    hak_store_release(&cache->owner.is_watched, false); // pairs with: hak_watch_add
    return true;
}

// Has anything happened since it ceased to be watched? What its thread does from now on wakes it, but for one block that it may have
// in its hand: it has looked at hit_tag before the barrier, and puts the block down after this look.
static bool is_still_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    const uint64_t events = hak_load_relaxed(&cache->owner.events) + hak_hook_events(cache);
    if (events != cache->owner.seen_events || !hak_inbox_is_empty(&cache->owner) ||
        !hak_remote_is_empty(cache) || hak_bigcache_expire(cache, UINT64_MAX) != 0 ||
        !may_be_unwatched(cache)) {
        return false;
    }
    HAK_EACH_MAGAZINE (cache, size_class) {
        if ((uint16_t)hak_cache_place(cache, size_class) !=
            cache->magazines[size_class].seen_place) {
            return false;
        }
    }
    return true;
}

// Whoever still saw the cache watched, and so noted nothing, has put its block there before the barrier: it is seen here. Step
// judge of watch.pml.
void hak_unwatch_judge(struct hak_cache **caches, unsigned count)
{
    const bool is_ordered = count > 0 && hak_os_barrier_all();
    for (unsigned i = 0; i < count; i++) {
        bool is_still = false;
        if (is_ordered && hak_lock_try(&caches[i]->owner.lock)) {
            is_still = is_still_locked(caches[i]);
            hak_lock_drop(&caches[i]->owner.lock);
        }
        if (!is_still) {
            hak_watch_note(&caches[i]->owner);
        }
    }
}
