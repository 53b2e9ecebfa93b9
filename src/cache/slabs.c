// slabs.c -- see slabs.h.
#include "cache/slabs.h"

#include "base/timing.h"
#include "cache/loot.h"
#include "cache/magazine.h"
#include "cache/watch.h"

static struct hak_slab *slab_item(struct hak_list *link)
{
    return HAK_LIST_ITEM(link, struct hak_slab, link);
}

struct hak_list *hak_cache_slabs(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (HAK_UNLIKELY(magazine->slabs.next == NULL)) {
        hak_list_start(&magazine->slabs);
        hak_list_start(&magazine->swept);
        cache->listed[size_class / 64] |= UINT64_C(1) << (size_class % 64);
    }
    return &magazine->slabs;
}

struct hak_list *hak_cache_swept_slabs(struct hak_cache *cache, unsigned size_class)
{
    hak_cache_slabs(cache, size_class); // starts both
    return &cache->magazines[size_class].swept;
}

struct hak_slab *hak_cache_first_slab(struct hak_cache *cache, unsigned size_class)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    struct hak_list *list =
        hak_list_is_empty(slabs) ? hak_cache_swept_slabs(cache, size_class) : slabs;
    return hak_list_is_empty(list) ? NULL : slab_item(list->next);
}

void hak_cache_list_slab(struct hak_cache *cache, struct hak_slab *slab)
{
    struct hak_list *slabs = hak_cache_slabs(cache, slab->size_class);
    struct hak_list *list = slab->is_swept ? hak_cache_swept_slabs(cache, slab->size_class) : slabs;
    hak_list_append(hak_slab_has_blocks(slab) ? list : &cache->full, &slab->link);
}

// By class, how many caches of threads have more than one slab with blocks to give, or had since the sweeper was there: a
// heap whose threads all take and give back writes it with each tick, not with each slab.
static _Atomic(uint32_t) spares[HAK_SMALL_CLASSES];

bool hak_cache_is_any_spare(const struct hak_cache *cache, unsigned size_class)
{
    return hak_load_relaxed(&spares[size_class]) > cache->magazines[size_class].is_counted;
}

static void count_spare(struct hak_cache *cache, unsigned size_class, bool counts)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (magazine->is_counted != counts && cache->has_thread) { // nobody takes any from others
        magazine->is_counted = counts;
        hak_add_relaxed(&spares[size_class], counts ? 1U : 0U - 1U);
    }
}

void hak_cache_note_spare(struct hak_cache *cache, unsigned size_class)
{
    _Atomic(bool) *has_spare = &cache->magazines[size_class].has_spare;
    const struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    const struct hak_list *swept = hak_cache_swept_slabs(cache, size_class);
    const bool has_two = slabs->next->next != slabs || swept->next->next != swept ||
                         (!hak_list_is_empty(slabs) && !hak_list_is_empty(swept));
    if (has_two != hak_load_relaxed(has_spare)) {
        hak_store_relaxed(has_spare, has_two);
        if (has_two) {
            count_spare(cache, size_class, true);
        }
    }
}

void hak_cache_count_spare(struct hak_cache *cache, unsigned size_class)
{
    count_spare(cache, size_class, hak_load_relaxed(&cache->magazines[size_class].has_spare));
}

// It had no blocks to give, or no pages, and now it has.
static void slab_list_again(struct hak_cache *cache, struct hak_slab *slab)
{
    // To the end: others have blocks too, and this one may fill up until its turn.
    slab->is_swept = false;
    hak_list_remove(&slab->link);
    hak_list_append(hak_cache_slabs(cache, slab->size_class), &slab->link);
    hak_cache_note_spare(cache, slab->size_class);
    hak_watch_note(cache);
}

void hak_cache_end_slab(struct hak_cache *cache, struct hak_slab *slab)
{
    hak_count(&cache->class_counts[slab->size_class].ended_slabs, 1);
    hak_slab_end(slab); // from here on somebody else's
}

static void lower(size_t *bytes, size_t less)
{
    *bytes -= less < *bytes ? less : *bytes;
}

static void note_taken(struct hak_cache *cache, unsigned size_class, unsigned count)
{
    const size_t bytes = count * (size_t)hak_classes[size_class].bytes;
    lower(&cache->returned_bytes, bytes);
    lower(&cache->scattered_bytes, bytes);
}

_Atomic(bool) hak_cache_ends_nothing;

// All its blocks have come back. At once, and also the last one: the magazine is what absorbs a swing, and the
// pages stay resident in the arena, for any class. A hardened slab, whose blocks are all looked at when it ends,
// only when others have blocks. True when it has ended.
static bool slab_retire(struct hak_cache *cache, struct hak_slab *slab)
{
    const struct hak_list *slabs = hak_cache_slabs(cache, slab->size_class);
    const struct hak_list *swept = hak_cache_swept_slabs(cache, slab->size_class);
    const bool is_only = slabs->next == &slab->link && slab->link.next == slabs;
    if (slab->is_hardened && is_only && hak_list_is_empty(swept)) {
        return false;
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_cache_ends_nothing))) {
        return false;
    }
    hak_list_remove(&slab->link);
    hak_cache_note_spare(cache, slab->size_class);
    lower(&cache->scattered_bytes, slab->units * HAK_UNIT_BYTES);
    hak_cache_end_slab(cache, slab);
    return true;
}

// Blocks came back into `slab`. True when it has ended with that.
HAK_INLINE bool slab_settle(struct hak_cache *cache, struct hak_slab *slab, bool was_full)
{
    if (HAK_UNLIKELY(was_full || slab->is_swept)) {
        slab_list_again(cache, slab);
    }
    return HAK_UNLIKELY(hak_slab_is_idle(slab)) && slab_retire(cache, slab);
}

bool hak_cache_put(struct hak_cache *cache, struct hak_slab *slab, void *block)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    hak_slab_put(slab, block);
    cache->scattered_bytes += hak_classes[slab->size_class].bytes;
    return slab_settle(cache, slab, was_full);
}

unsigned hak_cache_put_row(struct hak_cache *cache,
                           struct hak_slab *slab,
                           hak_place *places,
                           unsigned count)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    const unsigned done = hak_slab_put_row(slab, places, count);
    cache->scattered_bytes += done * (size_t)hak_classes[slab->size_class].bytes;
    slab_settle(cache, slab, was_full);
    return done;
}

// The slab to take from; NULL when none has blocks to give. One that was swept is so no longer.
static struct hak_slab *slab_to_take_from(struct hak_cache *cache, unsigned size_class)
{
    struct hak_slab *slab = hak_cache_first_slab(cache, size_class);
    if (slab != NULL && slab->is_swept) {
        slab->is_swept = false;
        hak_list_remove(&slab->link);
        hak_list_push(hak_cache_slabs(cache, size_class), &slab->link);
    }
    return slab;
}

static void slab_list_if_full(struct hak_cache *cache, struct hak_slab *slab)
{
    if (!hak_slab_has_blocks(slab)) {
        hak_list_remove(&slab->link);
        hak_list_push(&cache->full, &slab->link);
    }
}

// A new one. NULL without memory.
static struct hak_slab *slab_make(struct hak_cache *cache, unsigned size_class)
{
    struct hak_slab *slab = hak_slab_make(cache, cache->tag, size_class);
    if (slab != NULL) {
        hak_count(&cache->class_counts[size_class].made_slabs, 1);
    }
    return slab;
}

// From ended threads, from caches that can spare one, or a new one. NULL without memory.
static struct hak_slab *slab_from_elsewhere(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_slab *slab = hak_loot_slab(cache, size_class);
    if (slab == NULL) {
        slab = hak_loot_spare_slab(cache, size_class);
    }
    if (slab == NULL && hak_magazine_tidy(cache)) {
        hak_loot_break_up_some();
        slab = hak_loot_slab(cache, size_class);
    }
    if (slab == NULL) {
        const uint64_t begin = hak_timing_begin();
        slab = slab_make(cache, size_class);
        hak_timing_end(HAK_TIMING_slab_make, begin);
    }
    return slab;
}

// To those that it takes from.
static struct hak_slab *slab_add(struct hak_cache *cache, struct hak_slab *slab)
{
    if (slab != NULL) {
        hak_list_push(hak_cache_slabs(cache, slab->size_class), &slab->link);
    }
    return slab;
}

unsigned hak_cache_take_many(struct hak_cache *cache,
                             unsigned size_class,
                             void **blocks,
                             unsigned count) HAK_REQUIRES(&cache->lock)
{
    unsigned got = 0;
    while (got < count) {
        struct hak_slab *slab = slab_to_take_from(cache, size_class);
        if (slab == NULL) {
            slab = got > 0 ? NULL : slab_add(cache, slab_from_elsewhere(cache, size_class));
            if (slab == NULL) {
                break;
            }
        }
        got += hak_slab_take(slab, blocks + got, count - got);
        slab_list_if_full(cache, slab);
    }
    hak_cache_note_spare(cache, size_class);
    note_taken(cache, size_class, got);
    return got;
}

void *hak_cache_take(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->lock)
{
    struct hak_slab *slab = slab_to_take_from(cache, size_class);
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
    if (HAK_UNLIKELY(is_new || !hak_slab_has_blocks(slab))) {
        hak_cache_note_spare(cache, size_class);
    }
    note_taken(cache, size_class, 1);
    return block;
}

void *hak_cache_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed)
{
    struct hak_slab *slab = slab_to_take_from(cache, size_class);
    if (slab == NULL) {
        slab = slab_add(cache, slab_make(cache, size_class));
        if (slab == NULL) {
            return NULL;
        }
    }
    void *block = slab->free_blocks == 0 ? hak_slab_take_fresh(slab) : NULL;
    *zeroed = slab->zeroed;
    slab_list_if_full(cache, slab);
    return block;
}
