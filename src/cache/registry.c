// registry.c -- see registry.h.
#include "cache/registry.h"

#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/seen.h"
#include "cache/seldom.h"
#include "meta/pool.h"
#include "os/os.h"
#include "owner/watch.h"
#include "slab/arena.h"

#define NONE_DEAD(role) {&hak_registry.dead[role], &hak_registry.dead[role]}
struct hak_registry hak_registry = {
    .dead = {NONE_DEAD(HAK_ROLE_HEAP),
             NONE_DEAD(HAK_ROLE_THREAD),
             NONE_DEAD(HAK_ROLE_REST),
             NONE_DEAD(HAK_ROLE_SHORT),
             NONE_DEAD(HAK_ROLE_LONG)},
};

static uint32_t tag_bits(enum hak_owner_role role)
{
    return role == HAK_ROLE_HEAP ? HAK_TAG_HEAP : role == HAK_ROLE_THREAD ? 0 : HAK_TAG_APART;
}

// Written before it is read: a read would make a page of zeros resident first, and the first write would fault again. A heap
// may need fewer pages.
static void touch(struct hak_cache *cache)
{
    volatile char *bytes = (volatile char *)cache;
    for (size_t at = 0; at < sizeof *cache; at += hak_os_page_bytes()) {
        bytes[at] = 0;
    }
}

// Step add of registry.pml.
static struct hak_cache *registry_add_locked(enum hak_owner_role role)
    HAK_REQUIRES(&hak_registry.lock)
{
    struct hak_cache *cache =
        hak_registry.count < HAK_OWNERS_MOST ? hak_pool_take(sizeof *cache) : NULL;
    if (cache == NULL) {
        return NULL;
    }
    if (role != HAK_ROLE_HEAP) {
        touch(cache);
    }
    for (unsigned top = 0; top < HAK_TOPS; top++) {
        hak_store_relaxed(&cache->top[top], &hak_nothing[1]);
    }
    cache->is_direct = hak_seen_is_wanted();
    hak_store_relaxed(&cache->frees_apart, cache->is_direct);
    if (cache->is_direct || hak_load_relaxed(&hak_options.bigcache) == 0) {
        hak_lock_take(&cache->owner.lock);
        hak_bigcache_keep_nothing(cache);
        hak_lock_drop(&cache->owner.lock);
    }
    hak_list_start(&cache->owner.full);
    hak_list_start(&cache->owner.larges);
    hak_list_start(&cache->dead_link);
    cache->owner.tag = ++hak_registry.count << 8 | tag_bits(role);
    hak_store_relaxed(&cache->hit_tag, cache->owner.tag);
    cache->owner.role = (uint8_t)role;
    cache->tidied_at = hak_load_relaxed(&hak_arena.slab_bytes);
    cache->owner.has_thread = role != HAK_ROLE_HEAP;
    cache->owner.lock.is_gated = true;
    if (hak_seldom_is_never(cache)) {
        hak_seldom_end(cache);
    }
    cache->next = hak_load_relaxed(&hak_registry.all);
    hak_store_release(&hak_registry.all, cache); // pairs with: hak_registry_first
    hak_watch_note(&cache->owner);
    return cache;
}

// How many dead caches are asked whether their lock is free.
enum { REVIVE_LOOKS = 4 };

// Revive the dead cache that died last, because its data is the likeliest to be in the processor's cache; but none that is just
// being broken up, which may take long. Step take_over of registry.pml, step revive of owners.pml. Unproven: which lock it is.
static struct hak_cache *registry_revive_locked(enum hak_owner_role role, struct hak_cache *wanted)
    HAK_REQUIRES(&hak_registry.lock) HAK_UNPROVEN
{
    struct hak_list *dead = &hak_registry.dead[role];
    if (hak_list_is_empty(dead)) {
        return NULL;
    }
    struct hak_cache *cache = NULL;
    if (wanted != NULL && wanted->owner.role == role && hak_list_is_linked(&wanted->dead_link) &&
        hak_lock_try(&wanted->owner.lock)) {
        cache = wanted;
    }
    struct hak_list *link = dead->next;
    for (unsigned looks = 0; cache == NULL && link != dead && looks < REVIVE_LOOKS; looks++) {
        struct hak_cache *next = HAK_LIST_ITEM(link, struct hak_cache, dead_link);
        cache = hak_lock_try(&next->owner.lock) ? next : NULL;
        link = link->next;
    }
    if (cache == NULL) {
        return NULL;
    }
    hak_list_remove(&cache->dead_link);
    hak_store_relaxed(&cache->owner.state, HAK_OWNER_LIVE);
    hak_sub_relaxed(&hak_registry.whole, hak_load_relaxed(&cache->owner.is_whole));
    hak_store_relaxed(&cache->owner.is_whole, false);
    cache->exit_rounds = 0;
    hak_lock_drop(&cache->owner.lock);
    hak_watch_note(&cache->owner);
    return cache;
}

struct hak_cache *hak_registry_get(enum hak_owner_role role, struct hak_cache *wanted)
{
    hak_lock_take(&hak_registry.lock);
    struct hak_cache *cache = registry_revive_locked(role, wanted);
    if (cache == NULL) {
        cache = registry_add_locked(role);
    }
    hak_lock_drop(&hak_registry.lock);
    return cache;
}

void hak_registry_bury_locked(struct hak_cache *cache) HAK_REQUIRES(&hak_registry.lock)
{
    cache->ended_by = NULL;
    hak_list_push(&hak_registry.dead[cache->owner.role], &cache->dead_link);
}

// Those behind it have waited for longer, and the sweeper breaks them up. Without a sweeper, one whole cache stays for the next
// thread of a sequence.
struct hak_cache *hak_registry_surplus_locked(enum hak_owner_role role, bool has_sweeper)
    HAK_REQUIRES(&hak_registry.lock)
{
    const unsigned most = has_sweeper ? hak_os_processors() : 1;
    const struct hak_list *dead = &hak_registry.dead[role];
    unsigned whole = 0;
    for (struct hak_list *link = dead->next; link != dead; link = link->next) {
        struct hak_cache *cache = HAK_LIST_ITEM(link, struct hak_cache, dead_link);
        if (!hak_load_relaxed(&cache->owner.is_whole)) {
            return NULL;
        }
        if (++whole > most) {
            return cache;
        }
    }
    return NULL;
}
