// registry.h -- all caches, and those that wait for a thread.
//
// Owns      the list of all caches.
// Threads   any; one lock, rank "registry".
// Fails     hak_registry_get returns NULL without memory, and when there are as many caches as ids.
#pragma once

#include "cache/cache.h"

struct hak_registry {
    struct hak_lock lock;
    // Every cache there ever was, newest first; caches are never taken out or unmapped.
    //   written by   holder of lock   registry_add_locked   release
    //   read by      any              hak_registry_first    acquire
    _Atomic(struct hak_cache *) all;
    // lock: by role, for the next one of that role. Never one for another: ending a heap frees all
    // that its cache owns, and a thread leaves blocks behind that live on.
    struct hak_list dead[HAK_OWNER_ROLES];
    uint32_t count;          // lock: caches made; the last one's id
    _Atomic(uint32_t) whole; // dead caches that are not broken up
};

HAK_INTERNAL extern struct hak_registry hak_registry;

// All of them, but for what is added meanwhile.
HAK_INLINE struct hak_cache *hak_registry_first(void)
{
    return hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
}
#define HAK_EACH_CACHE(cache) \
    for (struct hak_cache *cache = hak_registry_first(); cache != NULL; cache = cache->next)

// A cache of that role, or NULL. `wanted`: that one, if it is dead.
HAK_INTERNAL struct hak_cache *hak_registry_get(enum hak_owner_role role, struct hak_cache *wanted);

// A dead one waits from now on for who needs it.
HAK_INTERNAL void hak_registry_bury_locked(struct hak_cache *cache)
    HAK_REQUIRES(&hak_registry.lock);
// More whole caches than can be in use at a time are not worth their memory: the first one beyond that, counted from the
// one that died last; NULL when there is none.
HAK_INTERNAL struct hak_cache *hak_registry_surplus_locked(enum hak_owner_role role,
                                                           bool has_sweeper)
    HAK_REQUIRES(&hak_registry.lock);
