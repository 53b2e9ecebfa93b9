// blocks.c -- blocks of hardened slabs: remote free, realloc, usable size, and the check when the program ends.
#include "cache/hooks.h"
#include "cache/registry.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "owner/owner.h"
#include "owner/slabs.h"
#include "secure/hardened.h"
#include "secure/states.h"
#include "slab/misuse.h"

// A heap's blocks end with the heap, so no thread's quarantine may hold one.
static bool is_heap(const struct hak_owner *owner)
{
    return hak_tag_is_heap(owner->tag);
}

// A block of a slab that was made before the options were known has no state.
void hak_hook_put(struct hak_cache *cache,
                  struct hak_owner *owner,
                  struct hak_run *slab,
                  void *block) HAK_UNPROVEN
{
    const unsigned size_class = slab->size_class; // the slab may end when the lock is dropped
    struct hak_held held = {block, NULL};
    bool has_ended = false;
    if (hak_states_exist(slab)) {
        if (!hak_states_is_used(slab, size_class, &held)) {
            hak_slab_die_of(slab, block);
        }
        hak_states_give(held, hak_classes[size_class].bytes, hak_harden.checks);
        if (is_heap(owner)) {
            has_ended = hak_hardened_hold(hak_cache_of(owner), held, size_class, true);
            held.state = NULL;
        }
    } else {
        has_ended = hak_slabs_put(owner, slab, block);
    }
    hak_sweep_cache_slabs_if_due_locked(hak_cache_of(owner));
    hak_lock_drop(&owner->lock);
    if (held.state != NULL) {
        has_ended = hak_hardened_hold(cache, held, size_class, false);
    }
    if (has_ended) {
        hak_sweeper_wanted(0);
    }
}

size_t hak_hook_usable(const void *block, size_t bytes)
{
    const struct hak_run *slab = hak_harden.checks.canaries ? hak_run_of(block) : NULL;
    if (slab == NULL || !slab->is_hardened) {
        return bytes;
    }
    if (!hak_harden_has_tags()) {
        return hak_canary_request(block, bytes);
    }
    hak_tags_pass(true); // `block` may be any address in a slab
    const size_t request = hak_canary_request(hak_tag_off(block), bytes);
    hak_tags_pass(false);
    return request;
}

enum hak_resized hak_hook_resize(void *block, size_t bytes)
{
    struct hak_owner *owner = hak_owner_lock(block);
    if (owner == NULL) {
        hak_misuse_wild_realloc(block);
    }
    hak_lock_is_held(&owner->lock);
    const struct hak_run *slab = hak_run_of(block);
    const size_t own_bytes = hak_classes[slab->size_class].bytes;
    struct hak_held held = {block, NULL};
    const bool is_judged =
        hak_states_exist(slab) && hak_states_is_used(slab, slab->size_class, &held);
    // A pointer whose tag is not the block's is stale: it is to an earlier block there.
    const bool is_stale = hak_harden_has_tags() && hak_states_exist(slab);
    if (!is_judged && (!hak_slab_is_out(slab, block) || is_stale)) {
        hak_misuse_freed_realloc(block, own_bytes);
    }
    // A block shrinks in place to half its size; below that a copy is worth its time.
    bool is_done = bytes <= own_bytes && bytes >= own_bytes / 2;
    if (is_done && hak_harden.checks.canaries && is_judged) {
        is_done = hak_states_resize(held, own_bytes, bytes);
    }
    hak_lock_drop(&owner->lock);
    return is_done ? HAK_RESIZED_IN_PLACE : HAK_RESIZED_BY_A_COPY;
}

static void check_list_locked(const struct hak_list *slabs)
{
    for (struct hak_list *link = slabs->next; link != slabs; link = link->next) {
        const struct hak_run *slab = HAK_LIST_ITEM(link, struct hak_run, link);
        if (hak_states_exist(slab)) {
            hak_states_check(slab);
        }
    }
}

static void check_cache(struct hak_cache *cache)
{
    if (!hak_lock_try(&cache->owner.lock)) {
        return; // see hak_ended_process
    }
    HAK_EACH_LISTED (&cache->owner, size_class) {
        check_list_locked(hak_slabs_of(&cache->owner, size_class));
        check_list_locked(hak_slabs_swept(&cache->owner, size_class));
    }
    check_list_locked(&cache->owner.full);
    hak_lock_drop(&cache->owner.lock);
}

void hak_hook_check(void)
{
    if (!hak_harden.sees_all) {
        return;
    }
    HAK_EACH_CACHE (cache) {
        check_cache(cache);
    }
    check_cache(&hak_cache_shared);
}
