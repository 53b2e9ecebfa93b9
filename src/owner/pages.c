// pages.c -- see pages.h.
#include "owner/pages.h"

#include "base/bits.h"
#include "base/check.h"
#include "owner/slabs.h"
#include "slab/huge_pages.h"
#include "slab/ranges.h"

// Slabs whose pages are purged before the owner's thread, which may be waiting, gets the lock: some
// 100 µs of system calls. More if these would not be enough for one call, at a page each.
enum { SLABS_AT_A_TIME = 8, SLABS_MOST = HAK_UNIT_BYTES / 4096, SLABS_LOOKED_AT = 32 };

static bool is_load(unsigned size_class, unsigned slabs, const struct hak_ranges *ranges)
{
    const unsigned more = hak_classes[size_class].units * HAK_SLAB_RANGES_OF_UNIT;
    return ranges->count + more > HAK_RANGES_MAX || slabs == SLABS_MOST ||
           (slabs >= SLABS_AT_A_TIME && hak_ranges_are_enough(ranges));
}

// The slabs that are purged together, and the end of each one's ranges.
struct lot {
    struct hak_run *slabs[SLABS_MOST];
    unsigned ends[SLABS_MOST];
    unsigned count;
};

// Put the slab in front of the swept ones, until the next try.
static void put_off_locked(struct hak_owner *owner, struct hak_run *slab) HAK_REQUIRES(&owner->lock)
{
    hak_list_remove(&slab->link);
    hak_list_push(hak_slabs_swept(owner, slab->size_class), &slab->link);
    hak_set_bit(owner->unpurged, slab->size_class, true);
}

// Purge. A slab of which the kernel refused pages (locked in memory), or that has too few for a call, is put off.
static void note_purged_locked(struct hak_owner *owner,
                               const struct lot *lot,
                               const struct hak_ranges *ranges,
                               struct hak_pages_given *given) HAK_REQUIRES(&owner->lock)
{
    const struct hak_purged purged = hak_ranges_purge(ranges);
    unsigned first = 0;
    for (unsigned i = 0; i < lot->count; i++) {
        struct hak_run *slab = lot->slabs[i];
        const uint64_t its = hak_bit_range(first, lot->ends[i] - first);
        if ((purged.done & its) != its) {
            hak_slab_note_unpurged(slab);
            put_off_locked(owner, slab);
            given->is_refused |= purged.is_tried;
        }
        first = lot->ends[i];
    }
    for (unsigned i = 0; i < ranges->count; i++) {
        given->bytes += (purged.done >> i & 1) != 0 ? ranges->ranges[i].bytes : 0;
    }
}

// Has a quarter of the blocks that were in use come back since the last look at the pages? Before, few more pages are wholly free.
static bool gives_enough(const struct hak_run *slab)
{
    const unsigned blocks = hak_classes[slab->size_class].blocks;
    const unsigned untaken = slab->has_old_pages ? blocks - hak_load_relaxed(&slab->fresh) : 0;
    return slab->free_blocks + untaken - slab->purged_blocks >= (blocks - slab->purged_blocks) / 4;
}

enum { SERVE_NEXT = 4 };

// The next slab to sweep; NULL if there is none.
static struct hak_run *slab_to_sweep(const struct hak_list *slabs, enum hak_pages_which which)
{
    const struct hak_list *link = slabs->next;
    for (unsigned i = 0; which == HAK_PAGES_LAST && i < SERVE_NEXT && link != slabs; i++) {
        link = link->next;
    }
    if (link == slabs) {
        return NULL;
    }
    return HAK_LIST_ITEM(which == HAK_PAGES_LAST ? slabs->prev : link, struct hak_run, link);
}

bool hak_pages_sweep(struct hak_owner *owner,
                     unsigned size_class,
                     enum hak_pages_which which,
                     struct hak_pages_given *given) HAK_REQUIRES(&owner->lock)
{
    struct hak_list *slabs = hak_slabs_of(owner, size_class);
    struct hak_list *swept = hak_slabs_swept(owner, size_class);
    struct lot lot = {.count = 0};
    struct hak_ranges ranges = {.count = 0};
    struct hak_run *slab;
    for (unsigned looks = 0; (slab = slab_to_sweep(slabs, which)) != NULL &&
                             looks < SLABS_LOOKED_AT && !is_load(size_class, lot.count, &ranges);
         looks++) {
        const unsigned before = ranges.count;
        given->looks++;
        HAK_LOOK();
        hak_list_remove(&slab->link);
        if (hak_slab_is_idle(slab)) {
            hak_slabs_end(owner, slab); // a hardened slab that had stayed as the only one
            continue;
        }
        const bool is_wanted = which == HAK_PAGES_ALL || gives_enough(slab);
        if (!is_wanted && which == HAK_PAGES_LAST) {
            hak_list_push(slabs, &slab->link); // it serves the next requests, and fills up
            continue;
        }
        if (is_wanted) {
            hak_slab_purge(slab, &ranges);
        }
        if (ranges.count > before && !hak_huge_pages_may_have_holes(slab)) {
            hak_ranges_drop(&ranges, before);
            hak_slab_note_unpurged(slab);
        }
        slab->is_swept = true;
        hak_list_append(swept, &slab->link);
        if (hak_slab_wants_purge(slab)) { // its ranges were not worth a call, or must stay for now
            put_off_locked(owner, slab);
        }
        lot.slabs[lot.count] = slab;
        lot.ends[lot.count] = ranges.count;
        lot.count += ranges.count > before;
    }
    hak_slabs_note_spare(owner, size_class);
    note_purged_locked(owner, &lot, &ranges, given);
    return slab != NULL;
}

void hak_pages_try_again(struct hak_owner *owner, unsigned size_class) HAK_REQUIRES(&owner->lock)
{
    struct hak_list *swept = hak_slabs_swept(owner, size_class);
    hak_set_bit(owner->unpurged, size_class, false);
    for (unsigned looks = 1; !hak_list_is_empty(swept); looks++) {
        struct hak_run *slab = HAK_LIST_ITEM(swept->next, struct hak_run, link);
        if (!hak_slab_wants_purge(slab)) {
            return;
        }
        HAK_LOOK();
        slab->is_swept = false;
        hak_list_remove(&slab->link);
        hak_list_append(hak_slabs_of(owner, size_class), &slab->link);
        if (looks % SLABS_LOOKED_AT == 0) {
            hak_lock_pass(&owner->lock);
        }
    }
}
