// purge.c -- see purge.h.
#include "slab/purge.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "slab/huge_pages.h"
#include "slab/queues.h"
#include "slab/ranges.h"
#include "slab/slab.h"
#include "slab/under_way.h"
#include "slab/units.h"

// The dirty units of `super` that have waited long enough. Parts of a huge page in use wait
// longer: a purge splits the page, and its other units may be freed soon.
static uint64_t super_due_units(const struct hak_super *super,
                                const struct hak_purge_age ages[HAK_VARIANTS])
{
    const uint64_t waited = hak_load_relaxed(&hak_arena.tick) - super->dirty_tick;
    return waited >= ages[hak_super_group(super)].part ? super->dirty_units
                                                       : hak_super_whole_units(super);
}

// Of the superslabs with due units, the one whose last free is the longest ago; NULL if none is due.
static struct hak_super *shard_oldest_locked(const struct hak_shard *shard,
                                             const struct hak_purge_age ages[HAK_VARIANTS])
    HAK_REQUIRES(&shard->lock)
{
    const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
    struct hak_super *oldest = NULL;
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        for (unsigned queue = 0; queue < HAK_DIRTY_QUEUES; queue++) {
            const struct hak_list *list = &shard->dirty[group][queue];
            const uint64_t age = queue == HAK_DIRTY_WHOLE ? ages[group].whole : ages[group].part;
            HAK_LOOK();
            if (hak_list_is_empty(list)) {
                continue;
            }
            struct hak_super *super = HAK_SUPER_OF_LINK(list->next, dirty_link);
            const bool is_due = tick - super->dirty_tick >= age;
            if (is_due && (oldest == NULL || super->dirty_tick < oldest->dirty_tick)) {
                oldest = super;
            }
        }
    }
    return oldest;
}

// A load: rows of units of a few superslabs of one shard, which are purged together.
enum { SUPERS_AT_A_TIME = 8, ROWS_PER_SUPER_MAX = HAK_SUPER_UNITS / 2 };
struct load {
    struct hak_shard *shard;
    uint64_t number;
    struct hak_super *supers[SUPERS_AT_A_TIME];
    uint64_t bits[SUPERS_AT_A_TIME]; // units to purge
    uint64_t done[SUPERS_AT_A_TIME]; // those of them that were purged
    unsigned owner[HAK_RANGES_MAX];  // for each range, the index of its superslab
    struct hak_ranges rows;
    unsigned count;
    size_t bytes;
    bool is_zeroed; // the purged pages read as zero
};

// Take `bits` out of the free units: no other thread sees them until load_return_locked.
static void load_take_locked(struct hak_shard *shard,
                             struct load *load,
                             struct hak_super *super,
                             uint64_t bits) HAK_REQUIRES(&shard->lock)
{
    const size_t bytes = hak_super_touched_bytes(super, bits);
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    super->purging_units |= bits;
    hak_arena_count_dirty(shard, super, (size_t)0 - bytes);
    HAK_ARENA_COUNT(shard, free_bytes, (size_t)0 - hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_queues_note_units_locked(shard, super);
    load->supers[load->count] = super;
    load->bits[load->count] = bits;
    load->done[load->count] = 0;
    load->bytes += bytes;
    while (bits != 0) {
        const unsigned unit = hak_lowest_bit(bits);
        const uint64_t rest = ~(bits >> unit);
        const unsigned count = rest == 0 ? HAK_SUPER_UNITS : hak_lowest_bit(rest);
        load->owner[load->rows.count] = load->count;
        hak_ranges_add(&load->rows, super->base + unit * HAK_UNIT_BYTES, count * HAK_UNIT_BYTES);
        bits &= ~hak_bit_range(unit, count);
    }
    load->count++;
}

// Fill the load with the oldest due units, up to `limit` bytes.
static void load_fill_locked(struct hak_shard *shard,
                             struct load *load,
                             const struct hak_purge_age ages[HAK_VARIANTS],
                             size_t limit) HAK_REQUIRES(&shard->lock)
{
    *load = (struct load){.shard = shard};
    while (load->count < SUPERS_AT_A_TIME && load->bytes < limit &&
           load->rows.count + ROWS_PER_SUPER_MAX <= HAK_RANGES_MAX) {
        struct hak_super *super = shard_oldest_locked(shard, ages);
        if (super == NULL) {
            break;
        }
        load_take_locked(shard, load, super, super_due_units(super, ages));
    }
    if (load->count > 0) {
        hak_lock_take(&hak_arena.lock);
        load->number = hak_under_way_begin_locked();
        hak_lock_drop(&hak_arena.lock);
    }
}

// True if the kernel has purged some of it.
static bool load_purge(struct load *load)
{
    const struct hak_purged result = hak_ranges_purge(&load->rows);
    load->is_zeroed = result.is_zeroed;
    for (uint64_t done = result.done; done != 0; done &= done - 1) {
        const unsigned i = hak_lowest_bit(done);
        const struct hak_range *row = &load->rows.ranges[i];
        const unsigned owner = load->owner[i];
        const size_t unit =
            (size_t)((char *)row->start - load->supers[owner]->base) >> HAK_UNIT_LOG2;
        load->done[owner] |= hak_bit_range((unsigned)unit, (unsigned)(row->bytes >> HAK_UNIT_LOG2));
    }
    return result.done != 0;
}

// Returns the bytes that were purged.
static size_t load_return_locked(struct hak_shard *shard, struct load *load)
    HAK_REQUIRES(&shard->lock)
{
    size_t purged = 0;
    hak_lock_take(&hak_arena.lock);
    hak_under_way_end_locked(load->number);
    hak_lock_drop(&hak_arena.lock);
    for (unsigned i = 0; i < load->count; i++) {
        struct hak_super *super = load->supers[i];
        const uint64_t done = load->done[i] & ~hak_super_place(super)->refilled_units;
        const uint64_t rest = load->bits[i] & ~done;
        super->purging_units &= ~load->bits[i];
        hak_super_place(super)->refilled_units &= ~load->bits[i];
        super->purged_units |= done;
        super->written_units &= ~(load->is_zeroed ? done : 0);
        purged += hak_super_touched_bytes(super, done);
        hak_super_fill_holes(super, done);
        hak_super_note_untouched_locked(super, done);
        hak_units_free_locked(shard, super, done, false);
        hak_huge_pages_note_holes_locked(
            shard, super, done & ~hak_super_whole_pages(super->free_units));
        if (rest != 0) { // else older dirty units would seem to be new
            hak_units_free_locked(shard, super, rest, true);
        }
    }
    return purged;
}

// The units are taken out first, so that the system calls need no lock. Adds the purged bytes to `*purged`. False: nothing is
// left, or the rest is locked in memory, and another try would not end.
static bool purge_load(struct hak_shard *shard,
                       const struct hak_purge_age ages[HAK_VARIANTS],
                       size_t limit,
                       size_t *purged)
{
    struct load load;
    hak_lock_take(&shard->lock);
    load_fill_locked(shard, &load, ages, limit);
    hak_lock_drop(&shard->lock);
    if (load.count == 0) {
        return false;
    }
    const bool is_taken = load_purge(&load);
    hak_lock_take(&shard->lock);
    *purged += load_return_locked(shard, &load);
    hak_lock_drop(&shard->lock);
    hak_store_relaxed(&hak_arena.is_locked, !is_taken);
    hak_under_way_tell();
    return is_taken;
}

static size_t purge_units(struct hak_shard *shard,
                          const struct hak_purge_age ages[HAK_VARIANTS],
                          size_t limit)
{
    size_t purged = 0;
    while (purged < limit && purge_load(shard, ages, limit - purged, &purged)) {
    }
    return purged;
}

size_t hak_purge_groups(const struct hak_purge_age ages[HAK_VARIANTS], size_t limit)
{
    const unsigned first = hak_load_relaxed(&hak_arena.purge_hand);
    size_t purged = 0;
    for (unsigned i = 0; i <= hak_arena.shard_mask && purged < limit; i++) {
        struct hak_shard *shard = &hak_arena.shards[(first + i) & hak_arena.shard_mask];
        purged += purge_units(shard, ages, limit - purged);
    }
    hak_store_relaxed(&hak_arena.purge_hand, first + 1);
    return purged;
}

size_t hak_purge(struct hak_purge_age age, size_t limit)
{
    const struct hak_purge_age ages[HAK_VARIANTS] = {age, age};
    return hak_purge_groups(ages, limit);
}

// Unproven: the caller has all locks.
void hak_purge_forked_locked(void) HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    if (hak_arena.all.next == NULL) {
        return; // nothing was allocated yet
    }
    for (unsigned i = 0; i < HAK_UNDER_WAY; i++) {
        hak_arena.under_way[i] = (struct hak_under_way){0, 0};
    }
    hak_store_relaxed(&hak_arena.waiters, 0);
    hak_count(&hak_arena.mapping_bytes, (size_t)0 - hak_arena.leaving_bytes);
    hak_arena.leaving_bytes = 0;
    hak_store_relaxed(&hak_arena.untold_most, 0); // the sweeper stayed with the parent
    hak_arena_tell_all();
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (super->is_mapping) {
            continue;
        }
        if (hak_super_place(super)->collapsing_units != 0) { // each write copies a page
            hak_super_place(super)->collapsing_units = 0;
        }
        if (super->purging_units != 0) {
            hak_units_free_locked(hak_arena_shard_of(super), super, super->purging_units, true);
            super->purging_units = 0;
            hak_super_place(super)->refilled_units = 0;
        }
    }
}
