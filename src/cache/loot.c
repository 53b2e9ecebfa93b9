// loot.c -- see loot.h.
#include "cache/loot.h"

#include "cache/inbox.h"
#include "cache/magazine.h"

// Its tag must be no other cache's: ids count up from 1.
struct hak_cache hak_orphans = {
    .tag = 0x7FFFFD00U,
    .is_direct = true,
    .full = {&hak_orphans.full, &hak_orphans.full},
    .larges = {&hak_orphans.larges, &hak_orphans.larges},
};

struct hak_slab *hak_loot_slab(struct hak_cache *cache, unsigned size_class)
{
    // A look without the lock: threads that never end must not meet here.
    // And never for a heap: its end frees all that it owns, and orphans hold blocks in use.
    const bool is_heap = !cache->has_thread && cache != &hak_cache_late;
    if (!hak_load_relaxed(&hak_orphans.has_slabs) || is_heap) {
        return NULL;
    }
    struct hak_slab *slab = NULL;
    hak_lock_take(&hak_orphans.lock);
    hak_count(&hak_orphans.events, 1);
    hak_inbox_drain(cache, &hak_orphans);
    struct hak_list *slabs = hak_cache_slabs(&hak_orphans, size_class);
    if (!hak_list_is_empty(slabs)) {
        slab = HAK_LIST_ITEM(slabs->next, struct hak_slab, link);
        hak_list_remove(&slab->link);
        hak_slab_move(slab, cache, cache->tag);
    }
    hak_lock_drop(&hak_orphans.lock);
    return slab;
}

static void leave_locked(struct hak_list *from, struct hak_list *to)
{
    while (!hak_list_is_empty(from)) {
        struct hak_slab *slab = HAK_LIST_ITEM(from->next, struct hak_slab, link);
        hak_list_remove(&slab->link);
        hak_slab_move(slab, &hak_orphans, hak_orphans.tag);
        hak_store_relaxed(&hak_orphans.has_slabs, true);
        hak_list_append(to, &slab->link);
    }
}

void hak_loot_leave(struct hak_cache *cache)
{
    hak_lock_take(&hak_orphans.lock);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        leave_locked(hak_cache_slabs(cache, size_class), hak_cache_slabs(&hak_orphans, size_class));
    }
    leave_locked(&cache->full, &hak_orphans.full);
    hak_lock_drop(&hak_orphans.lock);
}
