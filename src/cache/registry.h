// registry.h -- all caches, and the dead ones among them.
//
// Owns      the list of all caches.
// Threads   any; one lock, rank "registry".
// Fails     hak_registry_get returns NULL without memory, and when all ids are in use.
#pragma once

#include "cache/cache.h"

struct hak_registry {
    struct hak_lock lock;
    // Every cache ever made, newest first; caches are never taken out or unmapped.
    //   written by   holder of lock   registry_add_locked   release
    //   read by      any              hak_registry_first    acquire
    _Atomic(struct hak_cache *) all;
    // lock: dead caches, by role: they are reused in the same role only, because the end of a heap frees all
    // that its cache owns, while a thread leaves live blocks behind.
    struct hak_list dead[HAK_OWNER_ROLES];
    uint32_t count;          // lock: caches made; the id of the latest
    _Atomic(uint32_t) whole; // dead caches that are not broken up
};

HAK_INTERNAL extern struct hak_registry hak_registry;

// The newest cache. From it, `next` leads to all others; caches that are added meanwhile are missed.
HAK_INLINE struct hak_cache *hak_registry_first(void)
{
    return hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
}
#define HAK_EACH_CACHE(cache) \
    for (struct hak_cache *cache = hak_registry_first(); cache != NULL; cache = cache->next)

// A cache for `role`: a dead one, preferably `wanted`, or a new one; or NULL.
HAK_INTERNAL struct hak_cache *hak_registry_get(enum hak_owner_role role, struct hak_cache *wanted);

// Put a cache that has died into the list of its role.
HAK_INTERNAL void hak_registry_bury_locked(struct hak_cache *cache)
    HAK_REQUIRES(&hak_registry.lock);
// The dead cache to break up, because more whole ones than threads can run at a time are not worth their memory: the first
// beyond that number, counted from the one that died last. NULL: there are not so many.
HAK_INTERNAL struct hak_cache *hak_registry_surplus_locked(enum hak_owner_role role,
                                                           bool has_sweeper)
    HAK_REQUIRES(&hak_registry.lock);
