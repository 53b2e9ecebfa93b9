// direct.c -- see direct.h.
#include "cache/direct.h"

#include "cache/hardened.h"
#include "cache/inbox.h"
#include "cache/loot.h"
#include "cache/magazine.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "cache/thread.h"
#include "slab/misuse.h"
#include "slab/states.h"

void *hak_direct_take(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock)
{
    return hak_harden.sees_all ? hak_hardened_refill(cache, size_class, bytes)
                               : hak_cache_take(cache, size_class);
}

// A heap's blocks end with it: they must not be in the quarantine of a thread then.
static bool is_heap(const struct hak_cache *owner)
{
    return !owner->has_thread && owner != &hak_cache_late && owner != &hak_orphans;
}

void hak_direct_put(struct hak_cache *cache, void *block)
{
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (owner == NULL) {
        hak_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    struct hak_slab *slab = hak_slab_of(block);
    const unsigned size_class = slab->size_class; // of a slab that may end when the lock is dropped
    struct hak_held held = {block, NULL};
    bool has_ended = false;
    if (hak_slab_has_states(slab)) {
        if (!hak_states_is_used(slab, size_class, &held)) {
            hak_slab_die_of(slab, block);
        }
        hak_states_give(held, hak_classes[size_class].bytes, hak_harden.looks);
        if (is_heap(owner)) {
            has_ended = hak_hardened_hold(owner, held, size_class, true);
            held.state = NULL;
        }
    } else {
        has_ended = hak_cache_put(owner, slab, block);
    }
    if (owner->is_direct) {
        hak_sweep_if_due_locked(owner);
    }
    hak_lock_drop(&owner->lock);
    if (held.state != NULL) {
        has_ended = hak_hardened_hold(cache, held, size_class, false);
    }
    if (has_ended) {
        hak_sweep_wanted(0);
    }
}

size_t hak_direct_usable(const void *block, size_t bytes)
{
    const struct hak_slab *slab = hak_harden.looks.canaries ? hak_slab_of(block) : NULL;
    if (slab == NULL || !slab->is_hardened) {
        return bytes;
    }
    if (!hak_harden_has_tags()) {
        return hak_harden_request(block, bytes);
    }
    hak_tags_pass(true); // it may be any address of a slab's
    const size_t request = hak_harden_request(hak_tag_off(block), bytes);
    hak_tags_pass(false);
    return request;
}

bool hak_direct_resize(void *block, size_t bytes)
{
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (owner == NULL) {
        hak_die_wild_realloc(block);
    }
    hak_lock_is_held(&owner->lock);
    const struct hak_slab *slab = hak_slab_of(block);
    const size_t own_bytes = hak_classes[slab->size_class].bytes;
    struct hak_held held = {block, NULL};
    const bool is_judged =
        hak_slab_has_states(slab) && hak_states_is_used(slab, slab->size_class, &held);
    // Handed out, but not judged to be: the pointer has not the block's tag.
    const bool is_stale = hak_harden_has_tags() && hak_slab_has_states(slab);
    if (!is_judged && (!hak_slab_is_out(slab, block) || is_stale)) {
        hak_die_freed_realloc(block, own_bytes);
    }
    // Half of a block may stay unused before the rest is worth a copy.
    bool is_done = bytes <= own_bytes && bytes >= own_bytes / 2;
    if (is_done && hak_harden.looks.canaries && is_judged) {
        is_done = hak_states_resize(held, own_bytes, bytes);
    }
    hak_lock_drop(&owner->lock);
    return is_done;
}

void hak_direct_retire_slabs(struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_slab *slab;
        while ((slab = hak_cache_first_slab(cache, size_class)) != NULL) {
            slab->is_swept = false;
            hak_list_remove(&slab->link);
            hak_list_push(&cache->full, &slab->link);
        }
        hak_cache_note_spare(cache, size_class);
    }
}

static void check_list_locked(const struct hak_list *slabs)
{
    for (struct hak_list *link = slabs->next; link != slabs; link = link->next) {
        const struct hak_slab *slab = HAK_LIST_ITEM(link, struct hak_slab, link);
        if (hak_slab_has_states(slab)) {
            hak_states_check(slab);
        }
    }
}

static void check_cache(struct hak_cache *cache)
{
    if (!hak_lock_try(&cache->lock)) {
        return; // see hak_stop_process
    }
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        check_list_locked(hak_cache_slabs(cache, size_class));
        check_list_locked(hak_cache_swept_slabs(cache, size_class));
    }
    check_list_locked(&cache->full);
    hak_lock_drop(&cache->lock);
}

void hak_direct_check_all(void)
{
    struct hak_cache *cache =
        hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
    for (; cache != NULL; cache = cache->next) {
        check_cache(cache);
    }
    check_cache(&hak_orphans);
    check_cache(&hak_cache_late);
}
