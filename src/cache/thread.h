// thread.h -- a cache's birth, its thread's end, and fork.
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
    //   read by      any              hak_loot_slab …       acquire
    _Atomic(struct hak_cache *) all;
    struct hak_cache *dead;              // lock: without a thread, for the next one
    _Atomic(uint32_t) dead_count;        // lock
    _Atomic(struct hak_cache *) loot_next; // where the next look begins; a hint
    uint32_t count;                      // lock: caches made; the last one's id
};

HAK_INTERNAL extern struct hak_registry hak_registry;

// The calling thread's own cache, made or taken over now if it has none yet. After the
// thread's cache has ended: &hak_cache_late. NULL without memory.
HAK_INTERNAL struct hak_cache *hak_cache_for_thread(void);
// A cache for a thread, or for a heap, or NULL without memory.
HAK_INTERNAL struct hak_cache *hak_cache_make(bool has_thread);
// Nobody uses `cache` any more: put everything back, leave it to others.
HAK_INTERNAL void hak_cache_end(struct hak_cache *cache);

// Once, early: make the key whose destructor ends a thread's cache, and ask for fork's hooks.
HAK_INTERNAL void hak_thread_start(void);

#endif
