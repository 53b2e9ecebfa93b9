// direct.c -- see direct.h.
#include "cache/direct.h"

#include "cache/inbox.h"
#include "cache/loot.h"
#include "cache/magazine.h"
#include "cache/sweep.h"
#include "cache/thread.h"
#include "meta/pool.h"
#include "slab/harden.h"
#include "slab/misuse.h"

// Blocks that one free takes out of the quarantine at most: no free has to wait for thousands.
enum { LEAVING_MAX = 16 };

// Aligned requests come with a class that has room (hak_aligned_class).
unsigned hak_direct_class(unsigned size_class, size_t bytes)
{
    while (size_class < HAK_SMALL_CLASSES &&
           hak_classes[size_class].bytes < hak_harden_room(bytes)) {
        size_class++;
    }
    return size_class;
}

void *hak_direct_take(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock)
{
    void *block = hak_cache_take(cache, size_class);
    if (hak_harden.is_on && block != NULL && hak_slab_of(block)->is_hardened) {
        hak_harden_leaves(block, hak_classes[size_class].bytes, bytes);
    }
    return block;
}

// False without memory.
static bool quarantine_add_locked(struct hak_cache *owner, void *block, size_t bytes)
{
    if (owner->quarantine == NULL) {
        owner->quarantine = hak_pool_take(sizeof *owner->quarantine);
    }
    struct hak_quarantine *quarantine = owner->quarantine;
    if (quarantine == NULL || quarantine->count == HAK_QUARANTINE_BLOCKS) {
        return false;
    }
    const uint32_t place = (quarantine->first + quarantine->count) % HAK_QUARANTINE_BLOCKS;
    quarantine->blocks[place] = block;
    quarantine->count++;
    quarantine->bytes += bytes;
    return true;
}

static size_t block_bytes(const void *block)
{
    const unsigned size_class = HAK_MAP_CLASS(hak_map_entry(block));
    return size_class < HAK_SMALL_CLASSES ? hak_classes[size_class].bytes : 0;
}

// The oldest, or NULL when it may stay. What a heap's end has left behind counts as of any size.
static void *quarantine_oldest_locked(struct hak_quarantine *quarantine)
{
    if (quarantine == NULL || quarantine->count == 0 ||
        (quarantine->bytes <= hak_harden.quarantine_bytes &&
         quarantine->count < HAK_QUARANTINE_BLOCKS)) {
        return NULL;
    }
    void *block = quarantine->blocks[quarantine->first];
    const size_t bytes = block_bytes(block);
    quarantine->first = (quarantine->first + 1) % HAK_QUARANTINE_BLOCKS;
    quarantine->count--;
    quarantine->bytes -= bytes < quarantine->bytes ? bytes : quarantine->bytes;
    return block;
}

// From the quarantine into its slab; its heap may have ended meanwhile, and with it the slab. True when the
// slab has ended now.
static bool release_locked(struct hak_cache *owner, void *block)
{
    struct hak_slab *slab = hak_slab_of(block);
    return slab->is_hardened && hak_slab_unhold(slab, block) && hak_cache_put(owner, slab, block);
}

// Of another owner by now.
static void release_elsewhere(void *block)
{
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (owner != NULL) {
        hak_lock_is_held(&owner->lock);
        release_locked(owner, block);
        hak_lock_drop(&owner->lock);
    }
}

// What leaves a quarantine and is another owner's.
struct leaving {
    unsigned count;
    void *blocks[LEAVING_MAX];
};

// `block` is freed. True when a slab has ended with that.
static bool put_locked(struct hak_cache *owner, void *block, struct leaving *others)
    HAK_REQUIRES(&owner->lock)
{
    struct hak_slab *slab = hak_slab_of(block);
    const size_t bytes = hak_classes[slab->size_class].bytes;
    bool has_ended = false;
    if (!slab->is_hardened) {
        return hak_cache_put(owner, slab, block);
    }
    hak_slab_hold(slab, block);
    hak_harden_returns(block, bytes);
    if (hak_harden.quarantine_bytes == 0 || !quarantine_add_locked(owner, block, bytes)) {
        has_ended = release_locked(owner, block);
    }
    for (unsigned i = 0; i < LEAVING_MAX; i++) {
        void *oldest = quarantine_oldest_locked(owner->quarantine);
        if (oldest == NULL) {
            break;
        }
        if (hak_cache_owns_locked(owner, oldest)) {
            has_ended |= release_locked(owner, oldest);
        } else {
            others->blocks[others->count++] = oldest;
        }
    }
    return has_ended;
}

void hak_direct_put(void *block)
{
    struct leaving others = {.count = 0};
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (owner == NULL) {
        hak_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    const bool has_ended = put_locked(owner, block, &others);
    hak_lock_drop(&owner->lock);
    while (others.count > 0) {
        release_elsewhere(others.blocks[--others.count]);
    }
    if (has_ended) {
        hak_sweep_wanted(0);
    }
}

size_t hak_direct_usable(const void *block, size_t bytes)
{
    const struct hak_slab *slab = hak_harden.canaries ? hak_slab_of(block) : NULL;
    return slab != NULL && slab->is_hardened ? hak_harden_request(block, bytes) : bytes;
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
    if (!hak_slab_is_out(slab, block)) {
        hak_die_freed_realloc(block, own_bytes);
    }
    // Half of a block may stay unused before the rest is worth a copy.
    bool is_done = bytes <= own_bytes && bytes >= own_bytes / 2;
    if (is_done && hak_harden.canaries && slab->is_hardened) {
        is_done = hak_harden_resize(block, own_bytes, bytes);
    }
    hak_lock_drop(&owner->lock);
    return is_done;
}

void hak_direct_retire_slabs(struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_list *slabs = hak_cache_slabs(cache, size_class);
        while (!hak_list_is_empty(slabs)) {
            struct hak_list *link = slabs->next;
            hak_list_remove(link);
            hak_list_push(&cache->full, link);
        }
        hak_cache_note_spare(cache, size_class);
    }
}

static void check_list_locked(const struct hak_list *slabs)
{
    for (struct hak_list *link = slabs->next; link != slabs; link = link->next) {
        const struct hak_slab *slab = HAK_LIST_ITEM(link, struct hak_slab, link);
        if (slab->is_hardened) {
            hak_slab_check_blocks(slab);
        }
    }
}

static void check_cache(struct hak_cache *cache)
{
    hak_lock_take(&cache->lock);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        check_list_locked(hak_cache_slabs(cache, size_class));
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
