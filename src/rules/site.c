// site.c -- see site.h.
#include "rules/site.h"

#include "cache/bigcache.h"
#include "cache/magazine.h"
#include "cache/pools.h"
#include "cache/registry.h"
#include "owner/slabs.h"

struct hak_sites hak_sites;

#define SMALL_WAYS (HAK_WAY_SHORT | HAK_WAY_LONG | HAK_WAY_ZERO)
#define LARGE_WAYS (HAK_WAY_UNKEPT | HAK_WAY_UNMAP | HAK_WAY_HUGE | HAK_WAY_ZERO)

static bool is_about_small(unsigned ways)
{
    return (ways & SMALL_WAYS) != 0 || HAK_WAYS_ALIGN_LOG2(ways) != 0;
}

static bool is_about_large(unsigned ways)
{
    return (ways & LARGE_WAYS) != 0 || HAK_WAYS_ALIGN_LOG2(ways) != 0;
}

bool hak_site_add(const struct hak_site_rule *rule)
{
    hak_lock_take(&hak_registry.lock);
    const uint32_t count = hak_load_relaxed(&hak_sites.count);
    const bool has_room = count < HAK_SITE_RULES_MAX;
    if (has_room) {
        hak_sites.rules[count] = *rule;
        if (is_about_large(rule->ways)) {
            hak_store_relaxed(&hak_sites.any_large, true);
        }
        hak_store_release(&hak_sites.count, count + 1); // pairs with: hak_site_ways_slow
    }
    hak_lock_drop(&hak_registry.lock);
    return has_room;
}

_Atomic(uint64_t) hak_sites_known[HAK_SITES_KNOWN];

unsigned hak_site_ways_slow(uintptr_t address)
{
    const uint32_t count = hak_load_acquire(&hak_sites.count); // pairs with: hak_site_add
    unsigned ways = 0;
    for (uint32_t i = 0; i < count && ways == 0; i++) {
        const struct hak_site_rule *rule = &hak_sites.rules[i];
        ways = address - rule->start < rule->end - rule->start ? rule->ways : 0;
    }
    if (count != 0) {
        hak_store_relaxed(hak_site_place(address), hak_site_key(address, count) | ways);
    }
    return ways;
}

static struct hak_cache *companion(struct hak_cache *cache, enum hak_owner_role role)
{
    struct hak_cache **place = &cache->companions[role - HAK_ROLE_REST];
    if (HAK_UNLIKELY(*place == NULL)) {
        *place = hak_registry_get(role, NULL);
        if (*place != NULL) {
            hak_store_relaxed(&cache->frees_apart, true);
            hak_store_relaxed(&(*place)->thread_id, hak_load_relaxed(&cache->thread_id));
        }
    }
    return *place;
}

static void move_slabs_locked(struct hak_list *from,
                              struct hak_cache *cache,
                              struct hak_cache *rest,
                              unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock, &rest->owner.lock)
{
    for (struct hak_list *link = from->next; link != from;) {
        struct hak_run *slab = HAK_LIST_ITEM(link, struct hak_run, link);
        link = link->next;
        if (slab->size_class == size_class) {
            hak_list_remove(&slab->link);
            hak_slabs_move(slab, &cache->owner, &rest->owner);
            hak_slabs_list(&rest->owner, slab);
        }
    }
}

// Move the magazine's blocks and the slabs of a class to the companion. Two caches' locks would break the
// order of the ranks, so the second is only tried; if it is not free, the next refill tries again.
static void class_leave(struct hak_cache *cache, struct hak_cache *rest, unsigned size_class)
{
    hak_lock_take(&cache->owner.lock);
    if (hak_lock_try(&rest->owner.lock)) {
        hak_magazine_retire(cache, size_class);
        move_slabs_locked(hak_slabs_of(&cache->owner, size_class), cache, rest, size_class);
        move_slabs_locked(hak_slabs_swept(&cache->owner, size_class), cache, rest, size_class);
        move_slabs_locked(&cache->owner.full, cache, rest, size_class);
        hak_slabs_note_spare(&cache->owner, size_class);
        hak_slabs_note_spare(&rest->owner, size_class);
        hak_lock_drop(&rest->owner.lock);
    }
    hak_lock_drop(&cache->owner.lock);
}

static size_t aligned_class(size_t size_class, unsigned ways)
{
    const size_t mask = ((size_t)1 << HAK_WAYS_ALIGN_LOG2(ways)) - 1;
    while ((hak_classes[size_class].bytes & mask) != 0) {
        hak_pools_go_above();
        size_class++; // the largest is a multiple of every alignment that a rule may ask for
    }
    return size_class;
}

struct hak_cache *hak_site_cache(struct hak_cache *cache, size_t *size_class, unsigned ways)
{
    if (cache->is_direct) { // every call is seen, or the thread is ending: there are no companions
        *size_class = aligned_class(*size_class, ways);
        return cache;
    }
    const struct hak_magazine *magazine = &cache->magazines[*size_class];
    if (HAK_UNLIKELY(!magazine->is_ruled)) {
        if (is_about_small(ways)) {
            hak_store_relaxed(&hak_sites.is_ruled[*size_class], true);
        } else if (!hak_load_relaxed(&hak_sites.is_ruled[*size_class])) {
            return cache;
        }
        struct hak_cache *rest = companion(cache, HAK_ROLE_REST);
        if (rest != NULL) {
            class_leave(cache, rest, (unsigned)*size_class);
        }
        if (!magazine->is_ruled) {
            return cache;
        }
    }
    struct hak_cache *found = companion(cache, hak_site_role(ways));
    if (found == NULL) {
        return cache;
    }
    *size_class = aligned_class(*size_class, ways);
    return found;
}

struct hak_cache *hak_site_keeper(struct hak_cache *cache)
{
    if (!hak_load_relaxed(&hak_sites.any_large) || cache->is_direct) {
        return cache;
    }
    struct hak_cache *rest = companion(cache, HAK_ROLE_REST);
    if (rest == NULL) {
        return cache;
    }
    if (!cache->keeps_elsewhere) {
        hak_lock_take(&cache->owner.lock);
        hak_bigcache_keep_nothing(cache);
        cache->keeps_elsewhere = true;
        hak_lock_drop(&cache->owner.lock);
    }
    return rest;
}
