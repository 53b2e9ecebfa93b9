// world.c -- see world.h.
#include "cache/world.h"

#include "cache/dying.h"
#include "cache/hooks.h"
#include "cache/registry.h"
#include "cache/sweeper.h"
#include "meta/pool.h"
#include "os/os.h"
#include "owner/watch.h"
#include "slab/arena.h"
#include "slab/outside.h"
#include "slab/purge.h"

// In each cache, what the child of a fork writes to lies together, because the kernel copies each page that is written to.
_Static_assert(offsetof(struct hak_cache, owner.classes) -
                       offsetof(struct hak_cache, frees_apart) <=
                   2048,
               "half a page");

// The locks of the first ranks, whose holders may walk over the caches.
static struct hak_lock *const first_locks[] = {
    &hak_sweeper_lock, &hak_watch.lock, &hak_registry.lock};
enum { FIRST_LOCKS = sizeof first_locks / sizeof first_locks[0] };

// The lock after `lock` in the order of ranks; for NULL the first, NULL after the last. `cache` is how far the walk has come
// in the list of caches.
static struct hak_lock *world_next(const struct hak_lock *lock, struct hak_cache **cache)
{
    if (lock == NULL) {
        return first_locks[0];
    }
    for (unsigned i = 1; i < FIRST_LOCKS; i++) {
        if (lock == first_locks[i - 1]) {
            return first_locks[i];
        }
    }
    if (lock == &hak_registry.lock) {
        *cache = hak_load_relaxed(&hak_registry.all);
    } else if (*cache != NULL) {
        *cache = (*cache)->next;
    }
    if (*cache != NULL) {
        return &(*cache)->owner.lock;
    }
    if (lock == &hak_cache_shared.owner.lock) {
        return &hak_arena.shards[0].lock;
    }
    for (unsigned i = 0; i < hak_arena.shard_mask; i++) {
        if (lock == &hak_arena.shards[i].lock) {
            return &hak_arena.shards[i + 1].lock;
        }
    }
    if (lock == &hak_arena.shards[hak_arena.shard_mask].lock) {
        return &hak_arena.lock;
    }
    if (lock == &hak_arena.lock && hak_hook_lock() != NULL) {
        return hak_hook_lock();
    }
    if (lock == &hak_arena.lock || lock == hak_hook_lock()) {
        return &hak_pool.lock;
    }
    return lock == &hak_pool.lock ? NULL : &hak_cache_shared.owner.lock;
}

// Were the caches' locks not taken, but found free behind a closed gate? Written with the first locks.
static bool caches_are_free;

// Step open of gate.pml.
static void open_gate(void)
{
    if (caches_are_free) {
        hak_lock_open_gate();
        caches_are_free = false;
    }
}

// Drop the locks before `lock` (NULL: all). The first ones come last, because the list of caches does not change until then. A
// thread that did not get all of the first ones leaves the gate alone: another thread, which forks, may have closed it (step
// give_up of gate.pml). Unproven, as the next ones: they are all locks, in a loop.
static void world_drop(const struct hak_lock *lock, void (*drop)(struct hak_lock *)) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *taken = &hak_registry.lock;
    unsigned first = 0;
    while (first < FIRST_LOCKS && first_locks[first] != lock) {
        first++;
    }
    if (first == FIRST_LOCKS) {
        while ((taken = world_next(taken, &cache)) != lock) {
            if (cache == NULL || !caches_are_free) {
                drop(taken);
            }
        }
        open_gate();
    }
    while (first > 0) {
        drop(first_locks[--first]);
    }
}

// Take all locks by `take`. False, with nothing taken: `take` failed for one.
static bool world_take(bool (*take)(struct hak_lock *, unsigned), unsigned ms) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *lock = NULL;
    while ((lock = world_next(lock, &cache)) != NULL && take(lock, ms)) {
    }
    if (lock != NULL) {
        world_drop(lock, hak_lock_drop);
    }
    return lock == NULL;
}

static bool take_at_last(struct hak_lock *lock, unsigned ms) HAK_UNPROVEN
{
    (void)ms;
    hak_lock_take(lock);
    return true;
}

void hak_world_lock(void)
{
    world_take(take_at_last, 0);
}

bool hak_world_lock_within(unsigned ms)
{
    return world_take(hak_lock_take_within, ms);
}

// Few threads hold a lock for so long.
enum { OWN_AFTER_MS = 100 };

// Does the calling thread hold the lock that it waits for, in a call that a signal handler has interrupted? Yes if nobody else can.
static bool is_own(void)
{
    return hak_dying_now() || hak_os_has_one_task();
}

static bool take_unless_own(struct hak_lock *lock) HAK_UNPROVEN
{
    if (hak_lock_take_within(lock, OWN_AFTER_MS)) {
        return true;
    }
    const bool waits = !is_own();
    if (waits) {
        hak_lock_take(lock);
    }
    return waits;
}

static bool await_unless_own(const struct hak_lock *lock)
{
    while (!hak_lock_await_within(lock, OWN_AFTER_MS)) {
        if (is_own()) {
            return false;
        }
    }
    return true;
}

// Without a barrier the caches' locks are taken like all others. Step close of gate.pml.
static void close_gate(void)
{
    hak_store_relaxed(&hak_lock_gate, 1);
    caches_are_free = hak_os_barrier_all();
    if (!caches_are_free) {
        hak_lock_open_gate();
    }
}

bool hak_world_lock_to_fork(void) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *lock = NULL;
    while ((lock = world_next(lock, &cache)) != NULL) {
        const bool is_read = cache != NULL && caches_are_free;
        if (!(is_read ? await_unless_own(lock) : take_unless_own(lock))) {
            break;
        }
        if (lock == &hak_registry.lock) {
            close_gate();
        }
    }
    if (lock != NULL) {
        world_drop(lock, hak_lock_drop);
    }
    return lock == NULL;
}

void hak_world_unlock(void)
{
    world_drop(NULL, hak_lock_drop);
}

// The cache's thread exists in the parent only, and may have been ending. It may have had one block in hand, which counts as
// in use.
static void bury_in_child(struct hak_cache *cache) HAK_REQUIRES(&hak_registry.lock)
{
    hak_add_relaxed(&hak_registry.whole, !hak_load_relaxed(&cache->owner.is_whole));
    hak_store_relaxed(&cache->owner.state, HAK_OWNER_DEAD);
    hak_store_relaxed(&cache->owner.is_whole, true);
    hak_store_relaxed(&cache->frees_apart, cache->is_direct);
    hak_hook_forked(cache);
    hak_registry_bury_locked(cache);
}

void hak_world_unlock_in_child(void) HAK_UNPROVEN
{
    hak_watch_none_locked();
    hak_watch_again(&hak_cache_shared.owner);
    hak_purge_forked_locked();
    HAK_EACH_CACHE (cache) {
        hak_lock_drop_in_child(&cache->owner.lock);
        hak_watch_again(&cache->owner);
        hak_life_forget(&cache->life);
        if (!hak_hook_is_own(cache) && cache->owner.has_thread &&
            !hak_list_is_linked(&cache->dead_link)) {
            bury_in_child(cache);
        }
    }
    hak_sweeper_forked_locked();
    hak_lock_drop_in_child(&hak_outside_lock); // held by a thread that was looking there
    world_drop(NULL, hak_lock_drop_in_child);
}
