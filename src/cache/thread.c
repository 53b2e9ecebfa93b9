// thread.c -- see thread.h.
#include "cache/thread.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/options.h"
#include "cache/direct.h"
#include "cache/dying.h"
#include "cache/ended.h"
#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/loot.h"
#include "cache/prewarm.h"
#include "cache/seldom.h"
#include "cache/start.h"
#include "cache/steal.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"
#include "cache/watch.h"
#include "meta/pool.h"
#include "slab/arena.h"
#include "slab/purge.h"

#define NONE_DEAD(role) {&hak_registry.dead[role], &hak_registry.dead[role]}
struct hak_registry hak_registry = {
    .dead = {NONE_DEAD(HAK_ROLE_HEAP),
             NONE_DEAD(HAK_ROLE_THREAD),
             NONE_DEAD(HAK_ROLE_REST),
             NONE_DEAD(HAK_ROLE_SHORT),
             NONE_DEAD(HAK_ROLE_LONG)},
};

// Both: empty, because place 0 is NULL, and full, because place 1 is HAK_FULL.
hak_place hak_nothing[2] = {NULL, HAK_FULL};
#define NOTHING   (&hak_nothing[1])
#define NOTHING_8 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING
#define NOTHING_72                                                                          \
    NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, \
        NOTHING_8
#define ALL_NOTHING {NOTHING_72, NOTHING_72}

#define NO_HOT   {.block = HAK_FULL, .bin = HAK_LARGE_NO_BIN}
#define ALL_FULL {NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT}

// No unit has these owners' tags.
struct hak_cache hak_cache_nobody = {
    .top = ALL_NOTHING, .hot = ALL_FULL, .tag = 0x7FFFFF00U, .hit_tag = 0x7FFFFF00U};
struct hak_cache hak_cache_late = {
    .top = ALL_NOTHING,
    .tag = 0x7FFFFE00U,
    .hit_tag = 0x7FFFFE00U,
    .is_direct = true,
    .frees_apart = true,
    .hot = ALL_FULL,
    .full = {&hak_cache_late.full, &hak_cache_late.full},
    .larges = {&hak_cache_late.larges, &hak_cache_late.larges},
};

HAK_TLS struct hak_cache *hak_cache_self = &hak_cache_nobody;
HAK_TLS struct hak_cache *hak_cache_operators = &hak_cache_nobody;
static bool operators_are_apart; // written before the program's main

void hak_cache_keep_operators_apart(void)
{
    operators_are_apart = true;
    hak_cache_operators = &hak_cache_nobody;
}

void hak_cache_become(struct hak_cache *cache)
{
    hak_cache_self = cache;
    hak_cache_operators = operators_are_apart ? &hak_cache_nobody : cache;
}

static pthread_key_t thread_key;
static bool thread_key_is_made;

// Step add of registry.pml.
static struct hak_cache *registry_add_locked(enum hak_cache_role role)
    HAK_REQUIRES(&hak_registry.lock)
{
    struct hak_cache *cache = hak_pool_take(sizeof *cache);
    if (cache == NULL) {
        return NULL;
    }
    for (unsigned top = 0; top < HAK_TOPS; top++) {
        hak_store_relaxed(&cache->top[top], NOTHING);
    }
    cache->is_direct = hak_direct_is_wanted();
    hak_store_relaxed(&cache->frees_apart, cache->is_direct);
    if (cache->is_direct || hak_load_relaxed(&hak_options.bigcache) == 0) {
        hak_large_keep_nothing(cache);
    }
    hak_list_start(&cache->full);
    hak_list_start(&cache->larges);
    hak_list_start(&cache->dead_link);
    cache->tag = ++hak_registry.count << 8 | (role == HAK_ROLE_HEAP ? HAK_TAG_HEAP : 0);
    hak_store_relaxed(&cache->hit_tag, cache->tag);
    cache->role = (uint8_t)role;
    cache->tidied_at = hak_load_relaxed(&hak_arena.slab_bytes);
    cache->has_thread = role != HAK_ROLE_HEAP;
    if (hak_seldom_is_never(cache)) {
        hak_seldom_end(cache);
    }
    cache->next = hak_load_relaxed(&hak_registry.all);
    hak_store_release(&hak_registry.all, cache); // pairs with: hak_sampler_kick
    hak_watch_note(cache);
    return cache;
}

// Dead caches that are asked whether their lock is free.
enum { REVIVE_LOOKS = 4 };

// The one that died last: what it has is the likeliest to be in the processor's cache. Not one that is broken up at this
// moment, which may take long. Step take_over of registry.pml, step revive of owners.pml. Unproven: which lock it is.
static struct hak_cache *registry_revive_locked(enum hak_cache_role role, struct hak_cache *wanted)
    HAK_REQUIRES(&hak_registry.lock) HAK_UNPROVEN
{
    struct hak_list *dead = &hak_registry.dead[role];
    if (hak_list_is_empty(dead)) {
        return NULL;
    }
    struct hak_cache *cache = NULL;
    if (wanted != NULL && wanted->role == role && hak_list_is_linked(&wanted->dead_link) &&
        hak_lock_try(&wanted->lock)) {
        cache = wanted;
    }
    struct hak_list *link = dead->next;
    for (unsigned looks = 0; cache == NULL && link != dead && looks < REVIVE_LOOKS; looks++) {
        struct hak_cache *next = HAK_LIST_ITEM(link, struct hak_cache, dead_link);
        cache = hak_lock_try(&next->lock) ? next : NULL;
        link = link->next;
    }
    if (cache == NULL) {
        return NULL;
    }
    hak_list_remove(&cache->dead_link);
    hak_store_relaxed(&cache->state, HAK_CACHE_LIVE);
    hak_sub_relaxed(&hak_registry.whole, hak_load_relaxed(&cache->is_whole));
    hak_store_relaxed(&cache->is_whole, false);
    cache->exit_rounds = 0;
    hak_lock_drop(&cache->lock);
    hak_watch_note(cache);
    return cache;
}

struct hak_cache *hak_cache_make(enum hak_cache_role role, struct hak_cache *wanted)
{
    hak_lock_take(&hak_registry.lock);
    struct hak_cache *cache = registry_revive_locked(role, wanted);
    if (cache == NULL) {
        cache = registry_add_locked(role);
    }
    hak_lock_drop(&hak_registry.lock);
    return cache;
}

static void registry_bury_locked(struct hak_cache *cache) HAK_REQUIRES(&hak_registry.lock)
{
    hak_list_push(&hak_registry.dead[cache->role], &cache->dead_link);
}

// More whole caches than can be in use at a time are not worth their memory: the first one beyond
// that, counted from the one that died last; NULL when there is none. Those behind it have waited
// for longer, and the sweeper looks after them. Without a sweeper one waits for the next of a line of threads.
static struct hak_cache *registry_surplus_locked(enum hak_cache_role role, bool has_sweeper)
    HAK_REQUIRES(&hak_registry.lock)
{
    const unsigned most = has_sweeper ? hak_os_processors() : 1;
    const struct hak_list *dead = &hak_registry.dead[role];
    unsigned whole = 0;
    for (struct hak_list *link = dead->next; link != dead; link = link->next) {
        struct hak_cache *cache = HAK_LIST_ITEM(link, struct hak_cache, dead_link);
        if (!hak_load_relaxed(&cache->is_whole)) {
            return NULL;
        }
        if (++whole > most) {
            return cache;
        }
    }
    return NULL;
}

// Step end of registry.pml.
void hak_cache_end(struct hak_cache *cache)
{
    hak_watch_follow(cache);
    hak_hook_end(cache);
    hak_lock_take(&cache->lock);
    hak_inbox_post_all(cache);
    unsigned size_class = 0;
    while ((size_class = hak_next_bit(cache->listed, size_class, HAK_SMALL_CLASSES)) <
           HAK_SMALL_CLASSES) {
        cache->magazines[size_class++].is_refilled = false;
    }
    hak_store_relaxed(&cache->state, HAK_CACHE_DEAD);
    hak_store_relaxed(&cache->is_whole, true);
    hak_add_relaxed(&hak_registry.whole, 1);
    hak_lock_drop(&cache->lock);
    hak_watch_note(cache);
    hak_lock_take(&hak_registry.lock);
    registry_bury_locked(cache);
    const bool has_sweeper = hak_sweeper_is_there();
    struct hak_cache *surplus = registry_surplus_locked(cache->role, has_sweeper);
    hak_lock_drop(&hak_registry.lock);
    if (surplus != NULL) {
        hak_loot_break_up_dead(surplus, has_sweeper ? HAK_LOOT_SOME : UINT_MAX);
    }
    // At most what all of the heap holds: less is not worth a sweeper.
    hak_sweep_wanted(hak_arena_used_bytes());
}

// The C library calls the destructors of a thread's keys in rounds, as long as one of them
// sets its key again, four rounds at most (POSIX's PTHREAD_DESTRUCTOR_ITERATIONS). Others'
// destructors still allocate and free: ours waits for the last round (under ThreadSanitizer, whose
// runtime leaves in the last round, the second).
#define LAST_ROUND (HAK_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS)

static void thread_end(void *value)
{
    struct hak_cache *cache = value;
    if (hak_is_dying()) {
        return;
    }
    // A cache that was first needed by a destructor gets fewer rounds: it ends when one has passed
    // without anything happening.
    const uint64_t events = hak_load_relaxed(&cache->events);
    const bool is_quiet = cache->exit_rounds > 0 && events == cache->exit_events;
    cache->exit_events = events;
    if (!is_quiet && ++cache->exit_rounds < LAST_ROUND &&
        pthread_setspecific(thread_key, cache) == 0) {
        return;
    }
    hak_cache_become(&hak_cache_late);
    hak_life_end(&cache->life);
    hak_ended_cache(cache);
    hak_os_thread_ends();
}

// Who begins with a free may be a thread that ends: destructors of keys free in the last round, when ours is not called any more,
// and the C library behind all of them. A cache made then would never end. So the first frees go without one, straight into
// their slabs or by a parcel of hak_cache_late, as those after a cache's end; unless the block is a dead cache's, whose thread this
// one follows.
enum { FREES_WITHOUT_CACHE = 1024 };
static HAK_TLS uint32_t frees_without_cache;

static bool does_without_cache(const void *block, const struct hak_cache *owner)
{
    const bool follows = owner != NULL && hak_load_relaxed(&owner->state) == HAK_CACHE_DEAD;
    return block != NULL && !follows && frees_without_cache++ < FREES_WITHOUT_CACHE;
}

struct hak_cache *hak_cache_for_thread(const void *block)
{
    struct hak_cache *cache = hak_cache_self;
    if (cache != &hak_cache_nobody) {
        return cache;
    }
    struct hak_cache *owner = hak_cache_owner_of(block);
    if (does_without_cache(block, owner)) {
        return &hak_cache_late;
    }
    cache = hak_cache_make(HAK_ROLE_THREAD, owner);
    if (cache != NULL) {
        // First the cache: the C library's functions may be the program's own, which allocate.
        hak_cache_become(cache);
        hak_store_relaxed(&cache->thread_id, hak_os_thread_id());
        if (thread_key_is_made) {
            pthread_setspecific(thread_key, cache);
        }
        hak_life_begin(&cache->life);
        if (hak_load_relaxed(&hak_options.prewarm_tls) != 0) {
            hak_lock_take(&cache->lock);
            hak_prewarm_cache(cache);
            hak_lock_drop(&cache->lock);
        }
        hak_sweeper_thread_came(block == NULL);
        if (block == NULL) { // in free no thread may be started
            hak_ended_look();
        }
        hak_sweep_wanted(0);
    }
    return cache;
}

void hak_thread_without_cache(void)
{
    hak_cache_become(&hak_cache_late);
}

// All locks but the sweep's in the order of their ranks: the one behind `lock`, or the first. NULL after
// the last. `cache` is where it is among the caches.
static struct hak_lock *world_next(const struct hak_lock *lock, struct hak_cache **cache)
{
    if (lock == NULL) {
        return &hak_registry.lock;
    }
    if (lock == &hak_registry.lock) {
        *cache = hak_load_relaxed(&hak_registry.all);
    } else if (*cache != NULL) {
        *cache = (*cache)->next;
    }
    if (*cache != NULL) {
        return &(*cache)->lock;
    }
    if (lock == &hak_cache_late.lock) {
        return &hak_orphans.lock;
    }
    if (lock == &hak_orphans.lock) {
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
    return lock == &hak_pool.lock ? NULL : &hak_cache_late.lock;
}

// Unproven, as the next ones: they are all locks, in a loop.
void hak_world_lock(void) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *lock = NULL;
    hak_sweep_lock();
    while ((lock = world_next(lock, &cache)) != NULL) {
        hak_lock_take(lock);
    }
}

// Drop those in front of `lock`, the registry's last: the list of caches stays as it is until then.
static void world_drop_to(const struct hak_lock *lock) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *taken = &hak_registry.lock;
    if (lock != taken) {
        while ((taken = world_next(taken, &cache)) != lock) {
            hak_lock_drop(taken);
        }
        hak_lock_drop(&hak_registry.lock);
    }
    hak_lock_drop(&hak_watch.lock);
    hak_lock_drop(&hak_sweeper_lock);
}

// False, with nothing taken, when one of them was not to be had in that way.
static bool world_take(bool (*take)(struct hak_lock *, unsigned), unsigned ms) HAK_UNPROVEN
{
    struct hak_cache *cache = NULL;
    struct hak_lock *lock = NULL;
    if (!take(&hak_sweeper_lock, ms)) {
        return false;
    }
    if (!take(&hak_watch.lock, ms)) {
        hak_lock_drop(&hak_sweeper_lock);
        return false;
    }
    while ((lock = world_next(lock, &cache)) != NULL && take(lock, ms)) {
    }
    if (lock != NULL) {
        world_drop_to(lock);
    }
    return lock == NULL;
}

bool hak_world_lock_within(unsigned ms)
{
    return world_take(hak_lock_take_within, ms);
}

// Few things that are done with a lock take so long.
enum { OWN_AFTER_MS = 100 };

// False: nobody else can hold it, so the calling thread does, in a call that a signal's handler has interrupted.
static bool take_unless_own(struct hak_lock *lock, unsigned ms) HAK_UNPROVEN
{
    if (hak_lock_take_within(lock, ms)) {
        return true;
    }
    const bool is_own = hak_is_dying() || hak_os_has_one_task();
    if (!is_own) {
        hak_lock_take(lock);
    }
    return !is_own;
}

bool hak_world_lock_unless_own(void)
{
    return world_take(take_unless_own, OWN_AFTER_MS);
}

static void world_drop(bool is_child) HAK_UNPROVEN
{
    void (*drop)(struct hak_lock *) = is_child ? hak_lock_drop_in_child : hak_lock_drop;
    if (is_child) {
        hak_watch_none_locked();
        hak_watch_again(&hak_orphans);
        hak_watch_again(&hak_cache_late);
        hak_purge_forked_locked();
        hak_store_relaxed(&hak_cache_self->thread_id, hak_os_thread_id());
    }
    drop(&hak_pool.lock);
    if (hak_hook_lock() != NULL) {
        drop(hak_hook_lock());
    }
    drop(&hak_arena.lock);
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        drop(&hak_arena.shards[i].lock);
    }
    drop(&hak_orphans.lock);
    drop(&hak_cache_late.lock);
    for (struct hak_cache *cache = hak_load_relaxed(&hak_registry.all); cache != NULL;
         cache = cache->next) {
        if (is_child) {
            hak_watch_again(cache);
            hak_life_forget(&cache->life);
        }
        if (is_child && !hak_hook_is_own(cache) && cache->has_thread &&
            !hak_list_is_linked(&cache->dead_link)) {
            // Its thread stayed with the parent, maybe at its end. What it was in the middle of is at most one
            // block in its hand, which counts as in use.
            hak_add_relaxed(&hak_registry.whole, !hak_load_relaxed(&cache->is_whole));
            hak_store_relaxed(&cache->state, HAK_CACHE_DEAD);
            hak_store_relaxed(&cache->is_whole, true);
            hak_store_relaxed(&cache->frees_apart, cache->is_direct);
            hak_hook_forked(cache);
            registry_bury_locked(cache);
        }
        drop(&cache->lock);
    }
    drop(&hak_registry.lock);
    hak_sweep_unlock(is_child);
}

void hak_world_unlock(void)
{
    world_drop(false);
}

void hak_world_unlock_in_child(void)
{
    world_drop(true);
}

// With no lock of ours: the function may be a tool's, which allocates.
void hak_thread_start(void)
{
    pthread_key_t key;
    hak_lock_take(&hak_registry.lock);
    const bool is_made = thread_key_is_made;
    hak_lock_drop(&hak_registry.lock);
    if (is_made || pthread_key_create(&key, thread_end) != 0) {
        return;
    }
    hak_lock_take(&hak_registry.lock);
    const bool is_second = thread_key_is_made; // another thread was faster
    if (!is_second) {
        thread_key = key;
        thread_key_is_made = true;
    }
    hak_lock_drop(&hak_registry.lock);
    if (is_second) {
        pthread_key_delete(key);
    }
}
