// take.c -- see take.h.
#include "cache/take.h"

#include "base/timing.h"
#include "cache/due.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "owner/slabs.h"

// The slab to take from; NULL when none has blocks to give. A swept slab moves to the list of those that are not.
static struct hak_run *slab_to_take_from(struct hak_cache *cache, unsigned size_class)
{
    struct hak_run *slab = hak_slabs_first(&cache->owner, size_class);
    if (slab == NULL) {
        return NULL;
    }
    if (slab->purged_blocks != 0) {
        hak_due_note_again(hak_slab_purged_bytes(slab));
    }
    if (slab->is_swept) {
        slab->is_swept = false;
        hak_list_remove(&slab->link);
        hak_list_push(hak_slabs_of(&cache->owner, size_class), &slab->link);
    }
    return slab;
}

static void slab_list_if_full(struct hak_cache *cache, struct hak_run *slab)
{
    if (!hak_slab_has_blocks(slab)) {
        hak_list_remove(&slab->link);
        hak_list_push(&cache->owner.full, &slab->link);
        hak_slabs_note_spare(&cache->owner, slab->size_class);
    }
}

// An orphan, a slab that another cache can spare, or a new one. NULL without memory.
static struct hak_run *slab_from_elsewhere(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_run *slab = hak_reclaim_slab(cache, size_class);
    if (slab == NULL) {
        slab = hak_reclaim_spare_slab(cache, size_class);
    }
    if (slab == NULL && hak_magazine_tidy(cache)) {
        hak_reclaim_break_up_some();
        slab = hak_reclaim_slab(cache, size_class);
    }
    if (slab == NULL) {
        const uint64_t begin = hak_timing_begin();
        slab = hak_slabs_make(&cache->owner, size_class);
        hak_timing_end(HAK_TIMING_slab_make, begin);
    }
    return slab;
}

// Put `slab`, if any, into the list that the cache takes blocks from.
static struct hak_run *slab_add(struct hak_cache *cache, struct hak_run *slab)
{
    if (slab != NULL) {
        hak_list_push(hak_slabs_of(&cache->owner, slab->size_class), &slab->link);
    }
    return slab;
}

unsigned hak_take_many(struct hak_cache *cache, unsigned size_class, void **blocks, unsigned count)
    HAK_REQUIRES(&cache->owner.lock)
{
    unsigned got = 0;
    while (got < count) {
        struct hak_run *slab = slab_to_take_from(cache, size_class);
        if (slab == NULL) {
            slab = got > 0 ? NULL : slab_add(cache, slab_from_elsewhere(cache, size_class));
            if (slab == NULL) {
                break;
            }
        }
        got += hak_slab_take(slab, blocks + got, count - got);
        slab_list_if_full(cache, slab);
    }
    hak_slabs_note_spare(&cache->owner, size_class);
    hak_slabs_note_taken(&cache->owner, size_class, got);
    return got;
}

void *hak_take_one(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_run *slab = slab_to_take_from(cache, size_class);
    const bool is_new = slab == NULL;
    if (is_new) {
        slab = slab_add(cache, slab_from_elsewhere(cache, size_class));
        if (slab == NULL) {
            return NULL;
        }
    }
    void *block = slab->free_blocks == 0 ? hak_slab_take_fresh(slab) : NULL;
    if (block == NULL) {
        hak_slab_take(slab, &block, 1);
    }
    slab_list_if_full(cache, slab);
    if (HAK_UNLIKELY(is_new)) {
        hak_slabs_note_spare(&cache->owner, size_class);
    }
    hak_slabs_note_taken(&cache->owner, size_class, 1);
    return block;
}

bool hak_take_has_slab(struct hak_cache *cache, unsigned size_class)
{
    hak_lock_take(&cache->owner.lock);
    const bool has_slab = (hak_has_bit(cache->owner.listed, size_class) &&
                           hak_slabs_first(&cache->owner, size_class) != NULL) ||
                          slab_add(cache, hak_reclaim_slab(cache, size_class)) != NULL;
    hak_lock_drop(&cache->owner.lock);
    return has_slab;
}

void *hak_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed)
{
    struct hak_run *slab = slab_to_take_from(cache, size_class);
    if (slab == NULL) {
        slab = slab_add(cache, hak_slabs_make(&cache->owner, size_class));
        if (slab == NULL) {
            return NULL;
        }
    }
    void *block = slab->free_blocks == 0 ? hak_slab_take_fresh(slab) : NULL;
    *zeroed = slab->zeroed;
    slab_list_if_full(cache, slab);
    return block;
}
