// sweep_cache.c -- see sweep_cache.h.
#include "cache/sweep_cache.h"

#include "base/bits.h"
#include "cache/bigcache.h"
#include "cache/due.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/remote.h"
#include "cache/rest.h"
#include "cache/steal.h"
#include "owner/pages.h"
#include "owner/slabs.h"
#include "owner/watch.h"
#include "slab/arena.h"
#include "slab/ranges.h"

// Between two lots: let a thread that waits for the cache's lock have it. A pass that takes everything goes on with other caches
// and comes back: where more threads run than there are processors, that thread's turn comes after all others'. A thread that waits
// for the pass, to fork or to read statistics, waits for one lot at most: others may wait for it. True: the rest is put off.
static bool makes_way(struct hak_cache *cache, struct hak_sweep_how *how)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (how->all || hak_lock_is_wanted(&hak_watch.lock)) {
        how->is_put_off |=
            hak_lock_is_wanted(&hak_watch.lock) || hak_lock_is_wanted(&cache->owner.lock);
        return how->is_put_off;
    }
    hak_lock_pass(&cache->owner.lock);
    return false;
}

static bool may_look(const struct hak_cache *cache, const struct hak_sweep_how *how)
    HAK_REQUIRES(&cache->owner.lock)
{
    return how->lots > 0 && (!how->all || cache->owner.strip_looks > 0) && !how->is_put_off;
}

// A pass that takes everything begins with the cache. It looks at as many slabs as the cache has now, so that it ends even if the
// thread retakes what has gone back. If it is to try again, it includes slabs whose pages the kernel refused before.
static void strip_begin(struct hak_cache *cache, const struct hak_sweep_how *how)
    HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_LISTED (&cache->owner, size_class) {
        if (how->tries_again && hak_has_bit(cache->owner.unpurged, size_class)) {
            hak_pages_try_again(&cache->owner, size_class);
        }
    }
    cache->owner.strip = how->strip;
    cache->owner.strip_looks = cache->owner.slab_count;
}

// The class is not in use in this cache: purge pages inside its slabs.
static void sweep_class_locked(struct hak_cache *cache,
                               unsigned size_class,
                               struct hak_sweep_how *how) HAK_REQUIRES(&cache->owner.lock)
{
    if (hak_ranges_policy() == HAK_FREE_KEEP) {
        return;
    }
    if (how->tries_again && !how->all && hak_has_bit(cache->owner.unpurged, size_class)) {
        hak_pages_try_again(&cache->owner, size_class);
    }
    while (may_look(cache, how) && !hak_list_is_empty(hak_slabs_of(&cache->owner, size_class))) {
        how->lots--;
        const uint32_t looks = how->given.looks;
        const bool has_more =
            hak_pages_sweep(&cache->owner, size_class, HAK_PAGES_ALL, &how->given);
        cache->owner.strip_looks -=
            (uint32_t)hak_least(how->given.looks - looks, cache->owner.strip_looks);
        if (has_more && makes_way(cache, how)) {
            return;
        }
    }
}

// Purge pages inside slabs of classes that are not in use; with a sweeper, some of the others', too. True: the kernel refused some.
static bool sweep_classes_locked(struct hak_cache *cache, bool sleeps, struct hak_sweep_how *how)
    HAK_REQUIRES(&cache->owner.lock)
{
    bool has_unpurged = false;
    HAK_EACH_LISTED (&cache->owner, size_class) {
        if (sleeps || cache->magazines[size_class].idle_looks >= how->idle_looks) {
            sweep_class_locked(cache, size_class, how);
        } else if (hak_due_has_sweeper() && hak_due_takes_little_again() &&
                   hak_ranges_policy() != HAK_FREE_KEEP) {
            hak_pages_sweep(&cache->owner, size_class, HAK_PAGES_LAST, &how->given);
            hak_lock_pass(&cache->owner.lock);
        }
        has_unpurged |= hak_has_bit(cache->owner.unpurged, size_class);
        hak_slabs_count_spare(&cache->owner, size_class);
    }
    return has_unpurged;
}

// Free bytes that came back to slabs in use may wait within a budget, like free units, but at least this many may.
#define SCATTERED_LEAST HAK_MIB(3)

static bool is_due(const struct hak_cache *cache)
{
    return HAK_UNLIKELY(cache->owner.scattered_bytes > SCATTERED_LEAST) &&
           cache->owner.scattered_bytes > hak_due_budget_inside() &&
           hak_ranges_policy() != HAK_FREE_KEEP && !hak_due_has_sweeper();
}

// The first class that has slabs to look at, from `from` on and around; HAK_SMALL_CLASSES: none has.
static unsigned class_to_sweep(struct hak_cache *cache, unsigned from)
    HAK_REQUIRES(&cache->owner.lock)
{
    for (unsigned to = HAK_SMALL_CLASSES; to != 0; to = from, from = 0) {
        unsigned size_class = from;
        while ((size_class = hak_next_bit(cache->owner.listed, size_class, to)) < to) {
            if (!hak_list_is_empty(&cache->owner.classes[size_class].slabs)) {
                return size_class;
            }
            size_class++;
        }
    }
    return HAK_SMALL_CLASSES;
}

static void sweep_some_locked(struct hak_cache *cache, bool is_own) HAK_REQUIRES(&cache->owner.lock)
{
    const unsigned size_class = class_to_sweep(cache, cache->owner.sweep_hand);
    if (size_class < HAK_SMALL_CLASSES) {
        cache->owner.sweep_hand = (uint8_t)size_class;
        if (is_own) {
            hak_magazine_shrink(cache, size_class); // each block in it pins a page
        }
        // Refused pages are tried again in another tick.
        struct hak_pages_given given = {.bytes = 0};
        hak_pages_sweep(&cache->owner, size_class, HAK_PAGES_WORTH_IT, &given);
    }
}

// A heap that has fallen below half its recent peak does not need the magazines that grew with it.
#define MAGAZINES_LEAST HAK_MIB(2)

static bool magazines_are_due(const struct hak_cache *cache)
{
    return cache->magazine_bytes > MAGAZINES_LEAST && !hak_due_has_sweeper() &&
           hak_arena_used_bytes() < hak_arena_recent_peak() / 2;
}

void hak_sweep_cache_if_due(struct hak_cache *cache)
{
    if (hak_due_has_sweeper()) {
        return;
    }
    hak_lock_take(&cache->owner.lock);
    hak_sweep_cache_if_due_locked(cache, 0, 1);
    hak_lock_drop(&cache->owner.lock);
}

void hak_sweep_cache_if_due_locked(struct hak_cache *cache, unsigned size_class, uint32_t blocks)
    HAK_REQUIRES(&cache->owner.lock)
{
    const uint32_t half = 1U << (hak_classes[size_class].magazine_log2 - 1);
    for (uint32_t i = 0; i <= blocks / half && HAK_UNLIKELY(is_due(cache)); i++) {
        sweep_some_locked(cache, true);
    }
    if (HAK_UNLIKELY(magazines_are_due(cache))) {
        hak_magazine_shrink_one(cache, HAK_SMALL_CLASSES);
    }
}

// Has the owner's thread had no event while others looked so often? A thread at work purges its pages itself, and one that has
// ended leaves its slabs to the next. A hint.
enum { IDLE_LOOKS = 4 };

static bool is_idle(struct hak_owner *owner)
{
    const uint64_t events = hak_load_relaxed(&owner->events);
    const unsigned looks = hak_load_relaxed(&owner->others_looks);
    if (events != hak_load_relaxed(&owner->others_events)) {
        hak_store_relaxed(&owner->others_events, events);
        hak_store_relaxed(&owner->others_looks, 0);
        return false;
    }
    if (looks < IDLE_LOOKS) {
        hak_store_relaxed(&owner->others_looks, (uint8_t)(looks + 1));
        return false;
    }
    return hak_load_relaxed(&owner->state) == HAK_OWNER_LIVE;
}

void hak_sweep_cache_slabs_if_due_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    if (HAK_UNLIKELY(is_due(cache)) && (cache->is_direct || is_idle(&cache->owner))) {
        sweep_some_locked(cache, false);
    }
}

void hak_sweep_cache_slabs_if_due(struct hak_owner *owner)
{
    struct hak_cache *cache = hak_cache_of(owner);
    if (!hak_due_has_sweeper() && is_idle(owner) && hak_lock_try(&cache->owner.lock)) {
        if (is_due(cache)) {
            sweep_some_locked(cache, false);
        }
        hak_lock_drop(&cache->owner.lock);
    }
}

// Do the classes hold only what a pass that takes everything leaves: one block in each magazine, and swept slabs?
static bool are_classes_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        if (!hak_steal_has_taken_all(cache, size_class)) {
            return false;
        }
    }
    HAK_EACH_LISTED (&cache->owner, size_class) {
        const struct hak_owner_class *of_class = &cache->owner.classes[size_class];
        if (!hak_list_is_empty(&of_class->slabs) ||
            hak_has_bit(cache->owner.unpurged, size_class) ||
            !hak_slabs_are_counted(&cache->owner, size_class)) {
            return false;
        }
    }
    return true;
}

static bool is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return !hak_load_relaxed(&cache->owner.is_whole) && hak_inbox_is_empty(&cache->owner) &&
           hak_remote_is_empty(cache) && hak_hook_is_bare(cache) &&
           hak_bigcache_expire(cache, UINT64_MAX) == 0 && are_classes_bare(cache);
}

bool hak_sweep_cache_is_bare(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return is_bare(cache) && !hak_rest_is_due(cache);
}

// Is the cache dead, with nothing left to give? No thread is at work there, so one look is enough. (Not the shared cache, which
// gets slabs again and again.)
static bool is_at_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return hak_load_relaxed(&cache->owner.state) == HAK_OWNER_DEAD && cache != &hak_cache_shared &&
           is_bare(cache);
}

// What a pass that takes everything has left in the cache's inbox when it made way. Not what has come since: the pass ends also beside
// threads that send all the time.
static void drain_rest(struct hak_cache *self, struct hak_cache *cache, struct hak_sweep_how *how)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock)
{
    for (int parcels = 1; cache->owner.pending != NULL; parcels++) {
        hak_remote_drain(self, &cache->owner, 1);
        if (parcels % HAK_REMOTE_SOME == 0 && makes_way(cache, how)) {
            return;
        }
    }
}

bool hak_sweep_cache(struct hak_cache *self,
                     struct hak_cache *cache,
                     struct hak_sweep_how *how,
                     struct hak_sweep_found *found)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock)
{
    const bool all = how->all;
    const uint64_t events = hak_load_relaxed(&cache->owner.events) + hak_hook_events(cache);
    if (all && cache->owner.strip == how->strip) {
        drain_rest(self, cache, how);
        sweep_classes_locked(cache, true, how);
        return false;
    }
    if (how->only_idle && events != cache->owner.seen_events) {
        return false;
    }
    cache->owner.idle_ticks = events == cache->owner.seen_events ? cache->owner.idle_ticks + 1 : 0;
    cache->owner.seen_events = events;
    found->returned_bytes += cache->owner.returned_bytes;
    cache->owner.returned_bytes = 0;
    if (is_at_rest(cache)) {
        hak_magazine_renew(cache); // its next thread may do little
        hak_magazine_sleep(cache);
        hak_steal_note_tops(cache);
        return true;
    }
    const bool is_idle = cache->owner.idle_ticks >= how->idle_looks;
    const bool sleeps = all || is_idle;
    if (all && cache != &hak_cache_shared && hak_sweep_cache_is_bare(cache)) {
        return is_idle;
    }
    if (hak_load_relaxed(&cache->owner.is_whole)) {
        if (!sleeps) {
            found->kept_bytes++; // so that the next tick looks again
            return false;
        }
        while (how->lots > 0 && hak_load_relaxed(&cache->owner.is_whole) &&
               !hak_reclaim_break_up(cache, HAK_RECLAIM_SOME) && !makes_way(cache, how)) {
            how->lots--; // the cache may have a thread again by now
        }
    }
    if (sleeps) {
        if (hak_load_relaxed(&cache->owner.state) == HAK_OWNER_DEAD) {
            hak_magazine_renew(cache); // its next thread may do little
        }
        hak_remote_send_on(self, cache);
        while (hak_remote_drain(self, &cache->owner, HAK_REMOTE_SOME) && !makes_way(cache, how)) {
        }
        hak_magazine_sleep(cache);
    }
    if ((all || cache->owner.idle_ticks == how->idle_looks) && !hak_hook_empty(cache) &&
        cache->owner.idle_ticks > 0) {
        cache->owner.idle_ticks--; // hak_hook_empty is called once more
    }
    const bool are_empty = hak_steal_magazines(self, cache, all);
    if (all) {
        strip_begin(cache, how);
    }
    const bool has_unpurged = sweep_classes_locked(cache, sleeps, how);
    const size_t kept = hak_bigcache_expire(cache, how->kept_ticks);
    found->kept_bytes += kept;
    // If no lots are left, or the rest was put off, there may be more slabs.
    return is_idle && are_empty && !has_unpurged && kept == 0 && how->lots > 0 && !how->is_put_off;
}
