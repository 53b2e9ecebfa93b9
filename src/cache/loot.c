// loot.c -- see loot.h.
#include "cache/loot.h"

#include "cache/hardened.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/sampler.h"
#include "cache/thread.h"

// Its tag must be no other cache's: ids count up from 1.
struct hak_cache hak_orphans = {
    .tag = 0x7FFFFD00U,
    .hit_tag = 0x7FFFFD00U,
    .is_direct = true,
    .frees_apart = true,
    .state = HAK_CACHE_DEAD,
    .full = {&hak_orphans.full, &hak_orphans.full},
    .larges = {&hak_orphans.larges, &hak_orphans.larges},
};

// Never anything for a heap: its end frees all that it owns, and orphans hold blocks in use.
static bool is_heap(const struct hak_cache *cache)
{
    return !cache->has_thread && cache != &hak_cache_late;
}

// Do its slabs hold only what rules want together?
static bool is_apart(const struct hak_cache *cache)
{
    return cache->role >= HAK_ROLE_SHORT;
}

static bool may_share(const struct hak_cache *a, const struct hak_cache *b)
{
    return a->role == b->role || (!is_apart(a) && !is_apart(b));
}

struct hak_slab *hak_loot_slab(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    // A look without the lock: threads that never end must not meet here.
    if (!hak_load_relaxed(&hak_orphans.has_slabs) || is_heap(cache) || is_apart(cache)) {
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
        hak_count(&cache->counts.adopted_slabs, 1);
    }
    hak_lock_drop(&hak_orphans.lock);
    if (HAK_UNLIKELY(cache->is_direct)) {
        hak_inbox_post_all(cache); // its own frees never fill the parcels that are open now
    }
    return slab;
}

enum {
    ASKED = 32, // caches asked for one slab
    LOOKS = 16, // slabs looked at in one cache
    WORTH = 4,  // a slab is worth taking when one of so many of its blocks is free
};

// The slab to part with: not the first, which the cache itself takes from.
static struct hak_slab *spare_slab_locked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    struct hak_slab *best = NULL;
    unsigned most = hak_classes[size_class].blocks / WORTH;
    struct hak_list *link = slabs->next->next; // an empty list's is its head
    for (unsigned looks = 0; link != slabs && looks < LOOKS; link = link->next, looks++) {
        struct hak_slab *slab = HAK_LIST_ITEM(link, struct hak_slab, link);
        if (slab->free_blocks > most) {
            most = slab->free_blocks;
            best = slab;
        }
    }
    return best;
}

// Two caches' locks, against the order of ranks: the second by hak_lock_try. Step spare of owners.pml.
static struct hak_slab *spare_slab_of(struct hak_cache *owner,
                                      struct hak_cache *cache,
                                      unsigned size_class)
{
    if (owner == cache || !hak_load_relaxed(&owner->magazines[size_class].has_spare) ||
        is_heap(owner) || !may_share(owner, cache) || !hak_lock_try(&owner->lock)) {
        return NULL;
    }
    struct hak_slab *slab = spare_slab_locked(owner, size_class);
    if (slab != NULL) {
        hak_list_remove(&slab->link);
        hak_slab_move(slab, cache, cache->tag);
    }
    hak_cache_note_spare(owner, size_class);
    hak_lock_drop(&owner->lock);
    return slab;
}

struct hak_slab *hak_loot_spare_slab(struct hak_cache *cache, unsigned size_class)
{
    struct hak_slab *slab = NULL;
    if (is_heap(cache)) {
        return NULL;
    }
    for (unsigned asked = 0; asked < ASKED && slab == NULL; asked++) {
        if (cache->asked_next == NULL) {
            cache->asked_next =
                hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
        }
        slab = spare_slab_of(cache->asked_next, cache, size_class);
        cache->asked_next = cache->asked_next->next;
    }
    return slab;
}

// Two caches' locks, against the order of ranks: the second by hak_lock_try. Step adopt of owners.pml.
bool hak_loot_adopt(struct hak_cache *cache, void *block, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    if (is_heap(cache) || !cache->magazines[size_class].is_refilled) {
        return false;
    }
    struct hak_cache *owner = hak_cache_owner_or_end(block);
    if (hak_load_relaxed(&owner->state) != HAK_CACHE_DEAD || is_apart(owner) ||
        !hak_lock_try(&owner->lock)) {
        return false;
    }
    const bool is_taken =
        hak_load_relaxed(&owner->state) == HAK_CACHE_DEAD && hak_cache_owns_locked(owner, block);
    struct hak_slab *slab = is_taken ? hak_slab_of(block) : NULL;
    if (is_taken) {
        hak_list_remove(&slab->link);
        hak_slab_move(slab, cache, cache->tag);
        hak_count(&cache->counts.adopted_slabs, 1);
    }
    hak_lock_drop(&owner->lock);
    if (is_taken) {
        struct hak_list *slabs = hak_cache_slabs(cache, size_class);
        hak_list_push(hak_slab_has_blocks(slab) ? slabs : &cache->full, &slab->link);
        hak_magazine_spill(cache, hak_sampler_magazine(cache, size_class), block);
    }
    return is_taken;
}

// Step leave of owners.pml.
static void leave(struct hak_list *from)
{
    while (!hak_list_is_empty(from)) {
        struct hak_slab *slab = HAK_LIST_ITEM(from->next, struct hak_slab, link);
        hak_list_remove(&slab->link);
        // One at a time: others wait for this lock, and the slabs of a big heap are many.
        hak_lock_take(&hak_orphans.lock);
        hak_slab_move(slab, &hak_orphans, hak_orphans.tag);
        hak_store_relaxed(&hak_orphans.has_slabs, true);
        struct hak_list *slabs = hak_cache_slabs(&hak_orphans, slab->size_class);
        hak_list_append(hak_slab_has_blocks(slab) ? slabs : &hak_orphans.full, &slab->link);
        hak_lock_drop(&hak_orphans.lock);
    }
}

void hak_loot_break_up(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    hak_store_relaxed(&cache->is_whole, false);
    hak_inbox_drain(cache, cache);
    hak_magazine_flush_all(cache);
    hak_hardened_flush(cache);
    hak_inbox_post_all(cache);
    hak_large_expire(cache, 0);
    if (is_apart(cache)) {
        return; // its slabs wait for the next cache of its role
    }
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        leave(hak_cache_slabs(cache, size_class));
    }
    leave(&cache->full);
}

// Step break_up of registry.pml.
void hak_loot_break_up_dead(struct hak_cache *cache)
{
    if (!hak_load_relaxed(&cache->is_whole) || !hak_lock_try(&cache->lock)) {
        return;
    }
    if (hak_load_relaxed(&cache->is_whole)) {
        hak_loot_break_up(cache);
    }
    hak_lock_drop(&cache->lock);
}

void hak_loot_break_up_all(void)
{
    struct hak_cache *cache =
        hak_load_acquire(&hak_registry.all); // pairs with: registry_add_locked
    for (; cache != NULL; cache = cache->next) {
        hak_loot_break_up_dead(cache);
    }
}

void hak_loot_count(void)
{
    bool has_slabs = !hak_list_is_empty(&hak_orphans.full);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES && !has_slabs; size_class++) {
        has_slabs = !hak_list_is_empty(hak_cache_slabs(&hak_orphans, size_class));
    }
    hak_store_relaxed(&hak_orphans.has_slabs, has_slabs);
}
