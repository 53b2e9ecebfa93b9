// sweep.c -- see sweep.h.
#include "cache/sweep.h"

#include "base/atomic.h"
#include "base/timing.h"
#include "cache/bigcache.h"
#include "cache/due.h"
#include "cache/hooks.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/rest.h"
#include "cache/sweep_cache.h"
#include "meta/pool.h"
#include "os/os.h"
#include "os/refusal.h"
#include "owner/watch.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/superslabs.h"
#include "slab/under_way.h"

// After how many looks without an event a cache counts as asleep: 300 ms.
enum { IDLE_LOOKS = 3 };
// A peak is over after 500 ms to 1 s.
enum { PEAK_TICKS = 5 };

// How often one request is tried: each time, others may have taken what went back, or have counted it as theirs.
enum { TRIES_MOST = 8 };

static struct hak_cache *sweep_cache; // hak_watch.lock: for blocks on their way to other owners
static size_t kept_bytes;  // hak_watch.lock: in large blocks that caches kept in the last pass
static size_t kept_so_far; // hak_watch.lock: in the present pass

static bool has_own_thread(const struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return cache->owner.has_thread && hak_load_relaxed(&cache->owner.state) == HAK_OWNER_LIVE;
}

// May the sweeper stop watching the cache, once it has nothing left to give? Not if a live thread has a quarantine there: its
// frees go into that, and wake nobody.
static bool may_be_unwatched(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return !has_own_thread(cache) || hak_load_relaxed(&cache->hardened) == NULL;
}

// Stop watching the cache, which is in no list and has nothing left to give. False: it has to be watched. Step unwatch of
// watch.pml.
static bool unwatch(struct hak_cache *cache) HAK_REQUIRES(&hak_watch.lock, &cache->owner.lock)
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

// Has nothing happened since the cache ceased to be watched? Frees of its thread wake it from now on, except for one block that the
// thread may have in hand: it has read hit_tag before the barrier, and puts the block down after this look.
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

// Watch those caches again in which something has happened meanwhile; several together, as it takes a barrier. A thread that saw
// a cache still watched, and so did not note it, put its block there before the barrier: it is seen here. Step judge of watch.pml.
static void unwatch_judge(struct hak_cache **caches, unsigned count)
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

// The list that a cache goes into after a visit.
enum visit { VISIT_WATCH, VISIT_UNWATCH, VISIT_PUT_OFF };

// Visit a cache. If its lock is held, waits for it if `how` says so; else skips the cache, or puts it off if everything is to go.
static enum visit visit_locked(struct hak_cache *cache,
                               struct hak_sweep_how *how,
                               struct hak_sweep_found *found)
    HAK_REQUIRES(&hak_watch.lock, &sweep_cache->owner.lock)
{
    const bool comes_back = how->all && !how->only_idle;
    if (how->waits) {
        hak_lock_take(&cache->owner.lock);
    } else if (!hak_lock_try(&cache->owner.lock)) {
        return comes_back ? VISIT_PUT_OFF : VISIT_WATCH;
    }
    how->waits = false;
    how->is_put_off = false;
    const bool has_no_more = hak_sweep_cache(sweep_cache, cache, how, found);
    if (has_no_more && hak_rest_is_due(cache)) {
        hak_rest(cache);
        how->lots--;
    }
    const bool is_unwatched = has_no_more && unwatch(cache);
    hak_lock_drop(&cache->owner.lock);
    if (is_unwatched) {
        return VISIT_UNWATCH;
    }
    return how->is_put_off && comes_back ? VISIT_PUT_OFF : VISIT_WATCH;
}

// How many caches cease to be watched with one barrier.
enum { UNWATCHED_TOGETHER = 64 };

// A pass over the watched caches, or a part of it: at most `caches` of them, and only one while another thread waits for the lock,
// for instance to fork: with many threads at work, a pass may take seconds. The next part goes on where this one ends, so that a
// pass visits each cache once.
static struct hak_sweep_found sweep_some_locked(struct hak_sweep_how *how, unsigned caches)
    HAK_REQUIRES(&hak_watch.lock)
{
    struct hak_sweep_found found = {.kept_bytes = 0};
    struct hak_cache *unwatched[UNWATCHED_TOGETHER];
    unsigned count = 0;
    if (sweep_cache == NULL) {
        sweep_cache = hak_registry_get(HAK_ROLE_HEAP, NULL);
    }
    if (sweep_cache == NULL) {
        return found; // no memory for that cache; nothing is lost without a sweep
    }
    if (hak_watch.unvisited == NULL && hak_watch.put_off == NULL) {
        hak_watch.unvisited = hak_watch_all();
        hak_watch.watched = NULL;
        kept_bytes = kept_so_far;
        kept_so_far = 0;
    }
    hak_lock_take(&sweep_cache->owner.lock);
    for (; hak_watch.unvisited != NULL && caches > 0 && how->lots > 0; caches--) {
        struct hak_owner *owner = hak_watch.unvisited;
        struct hak_cache *cache = hak_cache_of(owner);
        hak_watch.unvisited = owner->watch_next; // read now: it changes if the owner is noted again
        const enum visit visit =
            cache != sweep_cache ? visit_locked(cache, how, &found) : VISIT_WATCH;
        if (visit == VISIT_UNWATCH) {
            unwatched[count++] = cache;
        } else if (visit == VISIT_PUT_OFF) {
            hak_watch_put_off(owner);
        } else {
            hak_watch_put(owner);
        }
        if (count == UNWATCHED_TOGETHER) {
            unwatch_judge(unwatched, count);
            count = 0;
        }
        if (HAK_UNLIKELY(hak_lock_is_wanted(&hak_watch.lock))) {
            break;
        }
    }
    unwatch_judge(unwatched, count);
    hak_remote_post_all(sweep_cache);
    hak_lock_drop(&sweep_cache->owner.lock);
    kept_so_far += found.kept_bytes;
    return found;
}

// A part of a pass that takes everything. All such passes under way do the same, as each may come to what another is there for.
static size_t strip_some_locked(bool waits) HAK_REQUIRES(&hak_watch.lock)
{
    const bool is_first = hak_watch.first_strips > 0;
    struct hak_sweep_how how = {.all = true,
                                .waits = waits && is_first,
                                .only_idle = !is_first,
                                .tries_again = is_first,
                                .idle_looks = IDLE_LOOKS,
                                .lots = UINT_MAX,
                                .strip = hak_watch.strip};
    sweep_some_locked(&how, UINT_MAX);
    return how.given.bytes;
}

// A pass that takes everything. If another thread begins one meanwhile, it puts all caches into the list again, and both threads go
// on until the list is empty; nobody else touches the list.
//
// A cache whose thread is at work is put off. If only such caches are left, the pass waits for the lock of one, then tries all
// others again: where more threads run than there are processors, a thread that was preempted with its lock held goes on after
// all others have had their turn, and most of their locks are free by then.
static size_t strip_locked(bool is_first) HAK_REQUIRES(&hak_watch.lock)
{
    bool waits = false;
    hak_watch.watched = hak_watch_all(); // including the rest of a tick's pass
    hak_watch.strips++;
    hak_watch.first_strips += is_first;
    hak_watch.strip++;
    size_t given = strip_some_locked(waits);
    while (hak_watch.unvisited != NULL || hak_watch.put_off != NULL) {
        hak_lock_pass(&hak_watch.lock);
        hak_lock_drop(&hak_watch.lock); // until it is dropped, it says that somebody waits
        hak_lock_take(&hak_watch.lock);
        if (hak_watch.unvisited == NULL) {
            hak_watch.unvisited = hak_watch.put_off;
            hak_watch.put_off = NULL;
            waits = true;
        }
        if (hak_watch.unvisited != NULL) {
            given += strip_some_locked(waits);
        }
        waits = false;
    }
    // In a child that a signal handler has forked here, and that goes on, it is 0.
    hak_watch.strips -= hak_watch.strips > 0;
    hak_watch.first_strips -= is_first && hak_watch.first_strips > 0;
    return given;
}

// Would a pass that takes everything find nothing in any cache? There is nothing in those that are not watched.
static bool are_all_bare(void)
{
    hak_lock_take(&hak_watch.lock);
    // Not before the first pass, which makes sweep_cache while there is memory.
    bool are_bare = sweep_cache != NULL && hak_watch.strips == 0;
    struct hak_owner *owner = are_bare ? hak_watch_all() : NULL;
    for (; owner != NULL && are_bare; owner = owner->watch_next) {
        struct hak_cache *cache = hak_cache_of(owner);
        if (cache == sweep_cache) {
            continue;
        }
        are_bare = hak_lock_try(&cache->owner.lock); // else somebody is at work on it
        if (are_bare) {
            are_bare = hak_sweep_cache_is_bare(cache);
            hak_lock_drop(&cache->owner.lock);
        }
    }
    hak_lock_drop(&hak_watch.lock);
    return are_bare;
}

// Take everything from the caches that they can give. Returns the bytes that went back to the system.
static size_t strip_all(void)
{
    hak_lock_take(&hak_watch.lock);
    size_t given = strip_locked(true);
    given += strip_locked(false); // blocks that were sent to a cache after its visit
    hak_lock_drop(&hak_watch.lock);
    return given;
}

struct hak_sweep_found hak_sweep_tick(uint64_t ticks,
                                      bool tries_again,
                                      struct hak_sweep_share share)
{
    struct hak_sweep_how how = {
        .tries_again = tries_again,
        .idle_looks = hak_due_is_urgent(HAK_URGENCY_IDLE) ? 1 : IDLE_LOOKS,
        .lots = share.lots,
    };
    hak_lock_take(&hak_watch.lock);
    const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
    hak_count(&hak_arena.tick, ticks);
    hak_arena_read_clock();
    how.kept_ticks = hak_due_kept_ticks(kept_bytes);
    const uint64_t begin = hak_timing_begin();
    struct hak_sweep_found found = {.kept_bytes = 0};
    if (hak_watch.strips == 0) {
        found = sweep_some_locked(&how, share.caches);
        found.has_more = hak_watch.unvisited != NULL || how.lots == 0;
    }
    found.is_refused = how.given.is_refused;
    if ((tick + ticks) / PEAK_TICKS != tick / PEAK_TICKS) {
        hak_arena_forget_peak();
    }
    hak_timing_end(HAK_TIMING_sweep, begin);
    if (found.has_more) {
        hak_lock_pass(&hak_watch.lock); // to a waiting thread, before the next part takes it
    }
    hak_lock_drop(&hak_watch.lock);
    return found;
}

bool hak_sweep_is_any_kept(void)
{
    hak_lock_take(&hak_watch.lock);
    const bool is_stripped = hak_watch.strips != 0; // then it is not known yet
    struct hak_owner *owner = is_stripped ? NULL : hak_watch_all();
    while (owner != NULL && !hak_load_relaxed(&owner->is_whole) &&
           hak_bigcache_expire(hak_cache_of(owner), UINT64_MAX) == 0) {
        owner = owner->watch_next;
    }
    hak_lock_drop(&hak_watch.lock);
    return is_stripped || owner != NULL;
}

static size_t sweep_everything(bool with_pages, bool with_addresses)
{
    hak_hook_sweeps_everything();
    size_t purged = are_all_bare() ? 0 : strip_all();
    purged += with_pages ? hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX) : 0;
    purged += with_pages ? hak_pool_trim() : 0;
    hak_under_way_wait();
    const size_t trimmed = with_addresses ? hak_superslabs_trim() : 0;
    hak_hook_swept_everything();
    return purged != 0 ? purged : trimmed;
}

size_t hak_sweep_everything(void)
{
    return hak_arena_is_started() ? sweep_everything(true, true) : 0;
}

void hak_sweep_for_request(struct hak_sweep_retry *retry)
{
    const int error = hak_refusal_since(retry->mark).error;
    sweep_everything(error <= 0, error != HAK_REFUSED_TO_GROW);
    retry->mark = hak_refusal_mark();
    retry->returns = hak_arena_returns();
}

bool hak_sweep_may_help(struct hak_sweep_retry *retry, size_t bytes)
{
    if (++retry->tries >= TRIES_MOST) {
        return false;
    }
    const int error = hak_refusal_since(retry->mark).error;
    return error == 0 || error == HAK_REFUSED_TO_GROW
               ? hak_arena_has_room_soon(bytes)
               : hak_under_way_is_any() || hak_arena_returns() != retry->returns || !are_all_bare();
}
