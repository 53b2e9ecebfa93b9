// direct.c -- see direct.h.
#include "cache/direct.h"

#include "cache/bigcache.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/remote.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "owner/owner.h"
#include "owner/slabs.h"

// Take no more blocks from the slabs that were made before every call had to be seen.
static void close_slabs(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_run *slab;
        while ((slab = hak_slabs_first(&cache->owner, size_class)) != NULL) {
            slab->is_swept = false;
            hak_list_remove(&slab->link);
            hak_list_push(&cache->owner.full, &slab->link);
        }
        hak_slabs_note_spare(&cache->owner, size_class);
    }
}

void hak_direct_start(struct hak_cache *cache)
{
    hak_lock_take(&cache->owner.lock);
    hak_magazine_end_all(cache);
    hak_remote_post_all(cache);
    hak_bigcache_keep_nothing(cache);
    close_slabs(cache);
    cache->is_direct = true;
    hak_store_relaxed(&cache->frees_apart, true);
    hak_lock_drop(&cache->owner.lock);
}

void hak_direct_put(struct hak_cache *cache, void *block)
{
    struct hak_owner *owner = hak_owner_lock(block);
    if (owner == NULL) {
        hak_slab_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    struct hak_run *slab = hak_run_of(block);
    if (HAK_UNLIKELY(slab->is_hardened)) {
        hak_hook_put(cache, owner, slab, block);
        return;
    }
    const bool has_ended = hak_slabs_put(owner, slab, block);
    struct hak_cache *its = hak_cache_of(owner);
    hak_lock_is_held(&its->owner.lock);
    hak_sweep_cache_slabs_if_due_locked(its);
    hak_lock_drop(&owner->lock);
    if (has_ended) {
        hak_sweeper_wanted(0);
    }
}
