// loot.c -- see loot.h.
#include "cache/loot.h"

#include "cache/inbox.h"
#include "cache/magazine.h"
#include "cache/thread.h"

// Dead caches looked at before asking the arena: a slab costs the arena about as much.
enum { LOOKS = 4 };

static struct hak_slab *loot_from(struct hak_cache *cache, struct hak_cache *dead, unsigned size_class)
{
    hak_inbox_drain(cache, dead);
    struct hak_list *slabs = hak_cache_slabs(dead, size_class);
    if (hak_list_is_empty(slabs)) {
        return NULL;
    }
    struct hak_slab *slab = HAK_LIST_ITEM(slabs->next, struct hak_slab, link);
    hak_list_remove(&slab->link);
    hak_slab_move(slab, cache, cache->tag);
    return slab;
}

struct hak_slab *hak_loot_slab(struct hak_cache *cache, unsigned size_class)
{
    if (hak_load_relaxed(&hak_registry.dead_count) == 0) {
        return NULL;
    }
    struct hak_cache *dead = hak_load_relaxed(&hak_registry.loot_next);
    struct hak_slab *slab = NULL;
    for (unsigned looks = 0; looks < LOOKS && slab == NULL;) {
        if (dead == NULL) {
            dead = hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
        }
        for (; dead != NULL && hak_load_relaxed(&dead->state) != HAK_CACHE_DEAD; dead = dead->next) {
        }
        looks++;
        if (dead == NULL) {
            continue; // once around
        }
        if (dead != cache && hak_lock_try(&dead->lock)) {
            if (hak_load_relaxed(&dead->state) == HAK_CACHE_DEAD) {
                slab = loot_from(cache, dead, size_class);
            }
            hak_lock_drop(&dead->lock);
        }
        dead = dead->next;
    }
    hak_store_relaxed(&hak_registry.loot_next, dead);
    return slab;
}
