// ended.c -- see ended.h.
#include "cache/ended.h"

#include <limits.h>

#include "cache/due.h"
#include "cache/dying.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/sweeper.h"
#include "owner/slabs.h"
#include "owner/watch.h"
#include "slab/arena.h"

enum { LOOKS = 4 };

// Step end of registry.pml.
void hak_ended_bury(struct hak_cache *cache)
{
    hak_sweeper_follow(cache);
    hak_lock_take(&cache->owner.lock);
    hak_remote_post_all(cache);
    HAK_EACH_LISTED (&cache->owner, size_class) {
        cache->magazines[size_class].is_refilled = false;
    }
    hak_store_relaxed(&cache->owner.state, HAK_OWNER_DEAD);
    // It is already, if a fork came in between (hak_heap_end_forked).
    hak_add_relaxed(&hak_registry.whole, !hak_load_relaxed(&cache->owner.is_whole));
    hak_store_relaxed(&cache->owner.is_whole, true);
    hak_lock_drop(&cache->owner.lock);
    hak_watch_note(&cache->owner);
    hak_lock_take(&hak_registry.lock);
    hak_registry_bury_locked(cache);
    const bool has_sweeper = hak_due_has_sweeper();
    struct hak_cache *surplus = hak_registry_surplus_locked(cache->owner.role, has_sweeper);
    hak_lock_drop(&hak_registry.lock);
    if (surplus != NULL) {
        hak_reclaim_break_up_dead(surplus, has_sweeper ? HAK_RECLAIM_SOME : UINT_MAX);
    }
    // The cache holds no more than the whole heap: if that is too little, the sweeper need not wake.
    hak_sweeper_wanted(hak_arena_used_bytes());
}

void hak_ended_cache(struct hak_cache *cache)
{
    for (unsigned i = 0; i < HAK_COMPANIONS; i++) {
        struct hak_cache *companion = cache->companions[i];
        cache->companions[i] = NULL;
        if (companion != NULL) {
            hak_ended_bury(companion);
        }
    }
    hak_store_relaxed(&cache->frees_apart, cache->is_direct);
    hak_ended_bury(cache);
    hak_sweeper_thread_left();
}

// Is the lock free? A thread that ended inside a call of ours, from a signal handler, has left it locked for good.
static bool is_unlocked(struct hak_cache *cache)
{
    const bool is_free = hak_lock_try(&cache->owner.lock);
    if (is_free) {
        hak_lock_drop(&cache->owner.lock);
    }
    return is_free;
}

// The lock may also be held for a moment, by a sweep or a thread that sends: then a later look ends the cache.
static void look_after(struct hak_cache *cache)
{
    if (is_unlocked(cache)) {
        hak_life_end(&cache->life);
        hak_ended_cache(cache);
    } else {
        hak_life_leave(&cache->life);
    }
}

void hak_ended_look(void)
{
    // The cache to go on from. The calling thread may know it through `hand` only, hence acquire and release.
    static _Atomic(struct hak_cache *) hand;
    struct hak_cache *cache = hak_load_acquire(&hand); // pairs with: hak_ended_look
    for (unsigned i = 0; i < LOOKS; i++) {
        struct hak_cache *next = cache != NULL ? cache->next : NULL;
        cache = next != NULL ? next : hak_registry_first();
        if (hak_life_is_over(&cache->life)) {
            look_after(cache);
        }
    }
    hak_store_release(&hand, cache); // pairs with: hak_ended_look
}

// Blocks are checked when they go into their slabs: those in magazines now, at the latest. A magazine in which nothing is
// wrong is only read: in a process that ends soon after its fork, the kernel has to copy each page that is written. A cache
// whose lock is held is left out: a signal handler may have called exit inside a call of ours.
static void look_at(struct hak_cache *cache, bool is_own)
{
    if (!hak_lock_try(&cache->owner.lock)) {
        return;
    }
    const bool has_no_thread = hak_load_relaxed(&cache->owner.is_whole);
    if (is_own || has_no_thread) {
        hak_remote_drain(cache, &cache->owner, HAK_REMOTE_ALL);
        HAK_EACH_MAGAZINE (cache, size_class) {
            if (!hak_magazine_is_sound(cache, size_class)) {
                hak_magazine_flush(cache, size_class);
            }
        }
    }
    if (has_no_thread) {
        hak_hook_flush(cache);
    }
    hak_lock_drop(&cache->owner.lock);
}

void hak_ended_process(void)
{
    if (hak_dying_now()) {
        return;
    }
    hak_store_relaxed(&hak_slabs_end_nothing, true);
    hak_hook_check();
    const bool has_magazines = !hak_cache_self->is_direct;
    HAK_EACH_CACHE (cache) {
        look_at(cache, has_magazines && hak_hook_is_own(cache));
    }
}
