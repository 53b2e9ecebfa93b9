// watch.c -- see watch.h.
#include "cache/watch.h"

#include "cache/hooks.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/seldom.h"
#include "cache/sweeper.h"
#include "os/os.h"

struct hak_watch hak_watch;

static bool has_own_thread(const struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    return cache->has_thread && hak_load_relaxed(&cache->state) == HAK_CACHE_LIVE;
}

// May the sweeper stop to watch it, if it has nothing left to give? A thread that looks at each block puts those that it
// frees into its quarantine, which wakes nobody.
static bool may_lie_down(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    return !has_own_thread(cache) || hak_load_relaxed(&cache->hardened) == NULL;
}

// Step note of watch.pml.
void hak_watch_add(struct hak_cache *cache)
{
    bool before = false;
    if (!hak_cas_acquire(&cache->is_watched, &before, true)) { // pairs with: hak_watch_lie_down
        return;                                                // another thread does
    }
    hak_add_relaxed(&hak_watch.count, 1);
    struct hak_cache *head = hak_load_relaxed(&hak_watch.noted);
    do {
        cache->watch_next = head;
    } while (!hak_cas_release(&hak_watch.noted, &head, cache)); // pairs with: hak_watch_all
}

void hak_watch_wake(struct hak_cache *cache)
{
    hak_lock_take(&cache->lock);
    hak_seldom_renew(cache); // of each class a block, which nobody else could take
    hak_store_relaxed(&cache->is_asleep, false);
    hak_store_relaxed(&cache->hit_tag, cache->tag - cache->apart);
    hak_lock_drop(&cache->lock);
    hak_watch_note(cache);
    hak_sweep_wanted(0);
}

void hak_watch_keep(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock)
{
    cache->watch_next = hak_watch.watched;
    hak_watch.watched = cache;
}

static void keep_all(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock)
{
    while (cache != NULL) {
        struct hak_cache *next = cache->watch_next;
        hak_watch_keep(cache);
        cache = next;
    }
}

struct hak_cache *hak_watch_all(void) HAK_REQUIRES(&hak_watch.lock)
{
    keep_all(hak_watch.rest);
    hak_watch.rest = NULL;
    keep_all(hak_swap_acquire(&hak_watch.noted, NULL)); // pairs with: hak_watch_add
    return hak_watch.watched;
}

void hak_watch_none_locked(void) HAK_REQUIRES(&hak_watch.lock)
{
    hak_watch.watched = NULL;
    hak_watch.rest = NULL;
    hak_store_relaxed(&hak_watch.noted, NULL);
    hak_store_relaxed(&hak_watch.count, 0);
}

void hak_watch_again(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock)
{
    hak_store_relaxed(&cache->is_watched, false);
    hak_watch_note(cache);
}

// Step lie_down of watch.pml.
bool hak_watch_lie_down(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock, &cache->lock)
{
    if (!may_lie_down(cache)) {
        return false;
    }
    if (has_own_thread(cache)) {
        hak_store_relaxed(&cache->is_asleep, true);
        hak_store_relaxed(&cache->hit_tag, HAK_TAG_ASLEEP);
    }
    hak_sub_relaxed(&hak_watch.count, 1);
    hak_store_release(&cache->is_watched, false); // pairs with: hak_watch_add
    return true;
}

// Has anything happened since it lay down? What its thread does from now on wakes it, but for one block that it may have
// in its hand: it has looked at hit_tag before the barrier, and puts the block down after this look.
static bool is_still_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    const uint64_t events = hak_load_relaxed(&cache->events) + hak_hook_events(cache);
    bool is_still = events == cache->seen_events && cache->pending == NULL &&
                    hak_load_relaxed(&cache->inbox) == NULL &&
                    hak_load_relaxed(&cache->loose) == NULL && hak_outbox_is_empty(cache) &&
                    hak_large_expire(cache, UINT64_MAX) == 0 && may_lie_down(cache);
    unsigned size_class = 0;
    while (is_still && (size_class = hak_magazine_from(cache, size_class)) < HAK_SMALL_CLASSES) {
        is_still = hak_magazine_top(cache, size_class) == cache->magazines[size_class].seen_top;
        size_class++;
    }
    return is_still;
}

// Behind the barrier, whoever put something there without noting it, as it still saw the cache watched, has done so before,
// and is seen here. Step judge of watch.pml.
void hak_watch_judge(struct hak_cache **lying, unsigned count)
{
    const bool is_ordered = count > 0 && hak_os_barrier_all();
    for (unsigned i = 0; i < count; i++) {
        bool is_still = false;
        if (is_ordered && hak_lock_try(&lying[i]->lock)) {
            is_still = is_still_locked(lying[i]);
            hak_lock_drop(&lying[i]->lock);
        }
        if (!is_still) {
            hak_watch_note(lying[i]);
        }
    }
}
