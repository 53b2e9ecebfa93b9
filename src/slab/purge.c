// purge.c -- giving pages and addresses back (see arena.h).
#include "base/bits.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/arena_locked.h"
#include "slab/ranges.h"

// The dirty units of `super` that have waited long enough. A part of a huge page has to wait for
// longer: giving it back splits the page, and its rest may follow soon.
static uint64_t super_due_units(const struct hak_super *super,
                                const struct hak_purge_age ages[HAK_ARMS])
{
    const uint64_t waited = hak_load_relaxed(&hak_arena.tick) - super->dirty_tick;
    const struct hak_purge_age age = ages[hak_super_group(super)];
    if (super->dirty_units == 0 || waited < age.whole) {
        return 0;
    }
    if (!super->is_huge || waited >= age.part) {
        return super->dirty_units;
    }
    const uint64_t low = UINT64_C(0xFFFFFFFF); // the units of the first huge page
    const uint64_t whole = ((super->free_units & low) == low ? low : 0) |
                           ((super->free_units & ~low) == ~low ? ~low : 0);
    return super->dirty_units & whole;
}

// The superslab with units that are due whose last free is the longest ago, or NULL.
static struct hak_super *arena_oldest_locked(const struct hak_purge_age ages[HAK_ARMS])
    HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *oldest = NULL;
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_lone && super_due_units(super, ages) != 0 &&
            (oldest == NULL || super->dirty_tick < oldest->dirty_tick)) {
            oldest = super;
        }
    }
    return oldest;
}

// Tails in superslabs in which nothing was freed for that long, as many as are given back together.
static void gather_tails_locked(const struct hak_purge_age ages[HAK_ARMS], struct hak_ranges *tails)
    HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (super->is_lone || tick - super->dirty_tick < ages[hak_super_group(super)].part) {
            continue;
        }
        for (uint64_t units = super->tail_units; units != 0; units &= units - 1) {
            const struct hak_slab *run =
                hak_slab_of(super->base + hak_lowest_bit(units) * HAK_UNIT_BYTES);
            if (tails->count == HAK_RANGES_MAX) {
                return;
            }
            hak_ranges_add(tails, run->base + run->bytes, hak_run_tail_bytes(run));
        }
    }
}

// The system calls are made with the lock, for a few pages: the runs must not grow meanwhile.
static size_t purge_tails_locked(const struct hak_purge_age ages[HAK_ARMS])
    HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_ranges tails = {.count = 0};
    gather_tails_locked(ages, &tails);
    size_t purged = 0;
    for (uint64_t done = hak_ranges_purge(&tails); done != 0; done &= done - 1) {
        const struct hak_range *tail = &tails.ranges[hak_lowest_bit(done)];
        struct hak_super *super = hak_map_super(tail->start);
        const size_t unit = (size_t)((char *)tail->start - super->base) >> HAK_UNIT_LOG2;
        super->tail_units &= ~(UINT64_C(1) << unit);
        purged += tail->bytes;
    }
    hak_count(&hak_arena.tail_bytes, (size_t)0 - purged);
    return purged;
}

static size_t purge_tails(const struct hak_purge_age ages[HAK_ARMS], size_t limit)
{
    size_t purged = 0;
    size_t latest = 1;
    while (latest > 0 && purged < limit && hak_load_relaxed(&hak_arena.tail_bytes) != 0) {
        hak_lock_take(&hak_arena.lock);
        latest = purge_tails_locked(ages);
        hak_lock_drop(&hak_arena.lock);
        purged += latest;
    }
    return purged;
}

// What is given back together: rows of units of a few superslabs.
enum { SUPERS_AT_A_TIME = 8, ROWS_PER_SUPER_MAX = HAK_SUPER_UNITS / 2 };
struct load {
    struct hak_super *supers[SUPERS_AT_A_TIME];
    uint64_t bits[SUPERS_AT_A_TIME]; // units that are to be given back
    uint64_t done[SUPERS_AT_A_TIME]; // those of them that were
    unsigned owner[HAK_RANGES_MAX];  // of each range: which of the superslabs
    struct hak_ranges rows;
    unsigned count;
    size_t bytes;
};

// Take `bits` out of what is free: nobody else sees them until load_return_locked.
static void load_take_locked(struct load *load, struct hak_super *super, uint64_t bits)
    HAK_REQUIRES(&hak_arena.lock)
{
    const size_t bytes = hak_count_bits(bits) * HAK_UNIT_BYTES;
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    super->purging_units |= bits;
    hak_count(&hak_arena.dirty_bytes, (size_t)0 - bytes);
    hak_count(&hak_arena.free_bytes, (size_t)0 - bytes);
    hak_arena_note_gaps_locked(super);
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

// The oldest that are due, up to `limit` bytes.
static void load_fill_locked(struct load *load,
                             const struct hak_purge_age ages[HAK_ARMS],
                             size_t limit) HAK_REQUIRES(&hak_arena.lock)
{
    *load = (struct load){.count = 0};
    while (load->count < SUPERS_AT_A_TIME && load->bytes < limit &&
           load->rows.count + ROWS_PER_SUPER_MAX <= HAK_RANGES_MAX) {
        struct hak_super *super = arena_oldest_locked(ages);
        if (super == NULL) {
            break;
        }
        load_take_locked(load, super, super_due_units(super, ages));
    }
}

static void load_purge(struct load *load)
{
    for (uint64_t done = hak_ranges_purge(&load->rows); done != 0; done &= done - 1) {
        const unsigned i = hak_lowest_bit(done);
        const struct hak_range *row = &load->rows.ranges[i];
        const unsigned owner = load->owner[i];
        const size_t unit =
            (size_t)((char *)row->start - load->supers[owner]->base) >> HAK_UNIT_LOG2;
        load->done[owner] |= hak_bit_range((unsigned)unit, (unsigned)(row->bytes >> HAK_UNIT_LOG2));
    }
}

// Returns the bytes that were given back.
static size_t load_return_locked(const struct load *load) HAK_REQUIRES(&hak_arena.lock)
{
    // What is given back lazily may keep its content for a while.
    const bool is_zeroed = hak_free_policy() != HAK_FREE_LAZILY;
    size_t purged = 0;
    for (unsigned i = 0; i < load->count; i++) {
        struct hak_super *super = load->supers[i];
        const uint64_t done = load->done[i];
        const uint64_t rest = load->bits[i] & ~done;
        super->purging_units &= ~load->bits[i];
        super->purged_units |= done;
        super->written_units &= ~(is_zeroed ? done : 0);
        hak_arena_free_units_locked(super, done, false);
        if (rest != 0) { // or those that wait for longer would seem to have come just now
            hak_arena_free_units_locked(super, rest, true);
        }
        purged += hak_count_bits(done) * HAK_UNIT_BYTES;
    }
    return purged;
}

// The system calls are made without the lock: the units are taken out meanwhile.
static size_t purge_units(const struct hak_purge_age ages[HAK_ARMS], size_t limit)
{
    size_t purged = 0;
    struct load load;
    size_t latest;
    do {
        hak_lock_take(&hak_arena.lock);
        load_fill_locked(&load, ages, limit - purged);
        hak_lock_drop(&hak_arena.lock);
        load_purge(&load);
        hak_lock_take(&hak_arena.lock);
        latest = load_return_locked(&load);
        if (load.count > 0) {
            hak_store_relaxed(&hak_arena.is_locked, latest == 0);
        }
        hak_lock_drop(&hak_arena.lock);
        purged += latest;
        // None: there are no more, or they are locked in memory, and trying again would not end.
    } while (latest > 0 && purged < limit);
    return purged;
}

size_t hak_arena_purge_groups(const struct hak_purge_age ages[HAK_ARMS], size_t limit)
{
    const size_t purged = purge_units(ages, limit);
    return purged < limit ? purged + purge_tails(ages, limit - purged) : purged;
}

size_t hak_arena_purge(struct hak_purge_age age, size_t limit)
{
    const struct hak_purge_age ages[HAK_ARMS] = {age, age};
    return hak_arena_purge_groups(ages, limit);
}

void hak_arena_waiting(size_t bytes[HAK_ARMS])
{
    bytes[0] = 0;
    bytes[1] = 0;
    hak_lock_take(&hak_arena.lock);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_lone) {
            bytes[hak_super_group(super)] += hak_count_bits(super->dirty_units) * HAK_UNIT_BYTES;
        }
    }
    hak_lock_drop(&hak_arena.lock);
}

void hak_arena_forked_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    if (hak_arena.all.next == NULL) {
        return; // nothing was allocated yet
    }
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_lone && super->purging_units != 0) {
            hak_arena_free_units_locked(super, super->purging_units, true);
            super->purging_units = 0;
        }
    }
}

static void super_unmap_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t dirty = hak_count_bits(super->dirty_units) * HAK_UNIT_BYTES;
    hak_map_publish(super->base, HAK_SUPER_BYTES, NULL);
    if (!hak_map_give(super->base, HAK_SUPER_BYTES)) {
        hak_map_publish(super->base, HAK_SUPER_BYTES, super);
        return;
    }
    hak_count(&hak_arena.dirty_bytes, (size_t)0 - dirty);
    hak_count(&hak_arena.free_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_count(&hak_arena.super_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_list_remove(&super->all_link);
    super->free_units = 0;
    super->dirty_units = 0;
    hak_arena_note_gaps_locked(super);
    super->base = (char *)hak_arena.spare_supers;
    hak_arena.spare_supers = super;
}

size_t hak_arena_trim(void)
{
    hak_lock_take(&hak_arena.lock);
    const size_t before = hak_load_relaxed(&hak_arena.super_bytes);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all;) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        link = link->next;
        if (!super->is_lone && super->free_units == ~UINT64_C(0)) {
            super_unmap_locked(super);
        }
    }
    const size_t after = hak_load_relaxed(&hak_arena.super_bytes);
    hak_lock_drop(&hak_arena.lock);
    return before - after;
}
