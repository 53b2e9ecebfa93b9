// slabs.c -- see slabs.h.
#include "cache/slabs.h"

#include "cache/watch.h"

static struct hak_run *slab_item(struct hak_list *link)
{
    return HAK_LIST_ITEM(link, struct hak_run, link);
}

struct hak_list *hak_slabs_of(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (HAK_UNLIKELY(magazine->slabs.next == NULL)) {
        hak_list_start(&magazine->slabs);
        hak_list_start(&magazine->swept);
        cache->listed[size_class / 64] |= UINT64_C(1) << (size_class % 64);
    }
    return &magazine->slabs;
}

struct hak_list *hak_slabs_swept(struct hak_cache *cache, unsigned size_class)
{
    hak_slabs_of(cache, size_class); // starts both
    return &cache->magazines[size_class].swept;
}

struct hak_run *hak_slabs_first(struct hak_cache *cache, unsigned size_class)
{
    struct hak_list *slabs = hak_slabs_of(cache, size_class);
    struct hak_list *list = hak_list_is_empty(slabs) ? hak_slabs_swept(cache, size_class) : slabs;
    return hak_list_is_empty(list) ? NULL : slab_item(list->next);
}

void hak_slabs_list(struct hak_cache *cache, struct hak_run *slab)
{
    struct hak_list *slabs = hak_slabs_of(cache, slab->size_class);
    struct hak_list *list = slab->is_swept ? hak_slabs_swept(cache, slab->size_class) : slabs;
    hak_list_append(hak_slab_has_blocks(slab) ? list : &cache->full, &slab->link);
}

// By class, how many caches of threads have more than one slab with blocks to give, or had since the sweeper was there: a
// heap whose threads all take and give back writes it with each tick, not with each slab.
static _Atomic(uint32_t) spares[HAK_SMALL_CLASSES];

bool hak_slabs_are_spare(const struct hak_cache *cache, unsigned size_class)
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

// More than the one that a thread or heap takes from next.
static bool has_to_spare(struct hak_cache *cache, unsigned size_class)
{
    const struct hak_list *slabs = hak_slabs_of(cache, size_class);
    const struct hak_list *swept = hak_slabs_swept(cache, size_class);
    const bool has_unswept = !hak_list_is_empty(slabs);
    const bool has_swept = !hak_list_is_empty(swept);
    if (cache->spares_all) {
        return has_unswept || has_swept;
    }
    return slabs->next->next != slabs || swept->next->next != swept || (has_unswept && has_swept);
}

void hak_slabs_note_spare(struct hak_cache *cache, unsigned size_class)
{
    _Atomic(bool) *has_spare = &cache->magazines[size_class].has_spare;
    const bool has_some = has_to_spare(cache, size_class);
    if (has_some != hak_load_relaxed(has_spare)) {
        hak_store_relaxed(has_spare, has_some);
        if (has_some) {
            count_spare(cache, size_class, true);
        }
    }
}

void hak_slabs_count_spare(struct hak_cache *cache, unsigned size_class)
{
    count_spare(cache, size_class, hak_load_relaxed(&cache->magazines[size_class].has_spare));
}

bool hak_slabs_are_counted(const struct hak_cache *cache, unsigned size_class)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    return !cache->has_thread || magazine->is_counted == hak_load_relaxed(&magazine->has_spare);
}

// It had no blocks to give, or no pages, and now it has.
static void slab_list_again(struct hak_cache *cache, struct hak_run *slab)
{
    // To the end: others have blocks too, and this one may fill up until its turn.
    slab->is_swept = false;
    hak_list_remove(&slab->link);
    hak_list_append(hak_slabs_of(cache, slab->size_class), &slab->link);
    hak_slabs_note_spare(cache, slab->size_class);
    hak_watch_note(cache);
}

void hak_slabs_end(struct hak_cache *cache, struct hak_run *slab)
{
    hak_count(&cache->class_counts[slab->size_class].ended_slabs, 1);
    hak_slab_end(slab); // from here on somebody else's
}

static void lower(size_t *bytes, size_t less)
{
    *bytes -= less < *bytes ? less : *bytes;
}

void hak_slabs_note_taken(struct hak_cache *cache, unsigned size_class, unsigned count)
{
    const size_t bytes = count * (size_t)hak_classes[size_class].bytes;
    lower(&cache->returned_bytes, bytes);
    lower(&cache->scattered_bytes, bytes);
}

_Atomic(bool) hak_slabs_end_nothing;

// Of a hardened slab all blocks are looked at when it ends: the only one of its class stays with a thread.
static bool slab_stays(struct hak_cache *cache, const struct hak_run *slab)
{
    const struct hak_list *slabs = hak_slabs_of(cache, slab->size_class);
    const struct hak_list *swept = hak_slabs_swept(cache, slab->size_class);
    return slab->is_hardened && slabs->next == &slab->link && slab->link.next == slabs &&
           hak_list_is_empty(swept) && hak_load_relaxed(&cache->state) == HAK_CACHE_LIVE;
}

bool hak_slabs_retire(struct hak_cache *cache, struct hak_run *slab)
{
    if (slab_stays(cache, slab) || HAK_UNLIKELY(hak_load_relaxed(&hak_slabs_end_nothing))) {
        return false;
    }
    hak_list_remove(&slab->link);
    hak_slabs_note_spare(cache, slab->size_class);
    lower(&cache->scattered_bytes, slab->units * HAK_UNIT_BYTES);
    hak_slabs_end(cache, slab);
    return true;
}

// Blocks came back into `slab`. True when it has ended with that.
HAK_INLINE bool slab_note_put(struct hak_cache *cache, struct hak_run *slab, bool was_full)
{
    if (HAK_UNLIKELY(was_full || slab->is_swept)) {
        slab_list_again(cache, slab);
    }
    return HAK_UNLIKELY(hak_slab_is_idle(slab)) && hak_slabs_retire(cache, slab);
}

bool hak_slabs_put(struct hak_cache *cache, struct hak_run *slab, void *block)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    hak_slab_put(slab, block);
    cache->scattered_bytes += hak_classes[slab->size_class].bytes;
    return slab_note_put(cache, slab, was_full);
}

unsigned hak_slabs_put_row(struct hak_cache *cache,
                           struct hak_run *slab,
                           hak_place *places,
                           unsigned count)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    const unsigned done = hak_slab_put_row(slab, places, count);
    cache->scattered_bytes += done * (size_t)hak_classes[slab->size_class].bytes;
    slab_note_put(cache, slab, was_full);
    return done;
}
