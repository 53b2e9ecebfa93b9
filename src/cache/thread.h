// thread.h -- a cache's birth, its thread's end, and all locks at a time.
//
// Layer     cache
// Owns      the registry of all caches.
// Threads   any; one lock, rank "registry".
// Fails     hak_cache_for_thread returns NULL without memory.
#ifndef HAK_CACHE_THREAD_H
#define HAK_CACHE_THREAD_H

#include "cache/cache.h"

struct hak_registry {
    struct hak_lock lock;
    // Every cache there ever was, newest first; caches are never taken out or unmapped.
    //   written by   holder of lock   registry_add_locked   release
    //   read by      any              sweep_pass_locked …   acquire
    _Atomic(struct hak_cache *) all;
    // lock: by role, for the next one of that role. Never one for another: ending a heap frees all
    // that its cache owns, and a thread leaves blocks behind that live on.
    struct hak_list dead[HAK_CACHE_ROLES];
    uint32_t count;          // lock: caches made; the last one's id
    _Atomic(uint32_t) whole; // dead caches that are not broken up
};

HAK_INTERNAL extern struct hak_registry hak_registry;

// The calling thread's own cache, made or taken over now if it has none yet. After the
// thread's cache has ended, and for the first frees of one that begins with them: &hak_cache_late.
// NULL without memory. `block`: what the thread is about to free, or NULL. A thread that begins with
// freeing what a dead one has left goes on with that one's data, and so with its cache.
HAK_INTERNAL struct hak_cache *hak_cache_for_thread(const void *block);
// A cache of that role, or NULL without memory. `wanted`: that one, if it is dead.
HAK_INTERNAL struct hak_cache *hak_cache_make(enum hak_cache_role role, struct hak_cache *wanted);
// Nobody uses `cache` any more: it waits, as it is, for who needs it.
HAK_INTERNAL void hak_cache_end(struct hak_cache *cache);

// Take every lock there is, in order of rank, and drop them: nothing changes in between, but for
// the places and tops of magazines. For fork, and for who wants exact figures.
HAK_INTERNAL void hak_world_lock(void);
// The same, but false, with nothing taken, when one of them is not to be had for `ms` milliseconds.
HAK_INTERNAL bool hak_world_lock_within(unsigned ms);
HAK_INTERNAL void hak_world_unlock(void);
// For fork, which may be called in the handler of a signal that has interrupted a call of ours: false, with nothing taken,
// when the thread itself holds one of them and there is no other thread; or when the process is dying (dying.h).
HAK_INTERNAL bool hak_world_lock_unless_own(void);
// In the child: the threads that stayed with the parent have ended.
HAK_INTERNAL void hak_world_unlock_in_child(void);

// Make the key whose destructor ends a thread's cache, if there is none yet: with the first cache, or before main.
HAK_INTERNAL void hak_thread_start(void);

// The calling thread never gets a cache of its own: the sweeper's.
HAK_INTERNAL void hak_thread_without_cache(void);

#endif
