// purge.c -- giving pages and addresses back (see arena.h).
#include "base/bits.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/arena_locked.h"

// Purge the units in `bits`, which nobody else can see at the moment. Returns those done.
static uint64_t super_purge(struct hak_super *super, uint64_t bits)
{
    uint64_t done = 0;
    while (bits != 0) {
        const unsigned unit = hak_lowest_bit(bits);
        const uint64_t rest = ~(bits >> unit);
        const unsigned count = rest == 0 ? HAK_SUPER_UNITS : hak_lowest_bit(rest);
        const uint64_t run = hak_bit_range(unit, count);
        if (hak_os_purge(super->base + unit * HAK_UNIT_BYTES, count * HAK_UNIT_BYTES)) {
            done |= run;
        }
        bits &= ~run;
    }
    return done;
}

// The dirty units of `super` that have waited long enough. A part of a huge page has to wait for
// longer: giving it back splits the page, and its rest may follow soon.
static uint64_t super_due_units(const struct hak_super *super, struct hak_purge_age age)
{
    const uint64_t waited = hak_load_relaxed(&hak_arena.tick) - super->dirty_tick;
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
static struct hak_super *arena_oldest_locked(struct hak_purge_age age)
{
    struct hak_super *oldest = NULL;
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_lone && super_due_units(super, age) != 0 &&
            (oldest == NULL || super->dirty_tick < oldest->dirty_tick)) {
            oldest = super;
        }
    }
    return oldest;
}

// A superslab in which nothing was freed for that long, with tails; NULL when there is none.
static struct hak_super *arena_tailed_locked(struct hak_purge_age age)
{
    const uint64_t tick = hak_load_relaxed(&hak_arena.tick);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        if (!super->is_lone && super->tail_units != 0 && tick - super->dirty_tick >= age.part) {
            return super;
        }
    }
    return NULL;
}

// The system call is made with the lock, for a few pages: the run must not grow meanwhile.
static size_t super_purge_tails_locked(struct hak_super *super)
{
    size_t purged = 0;
    for (; super->tail_units != 0; super->tail_units &= super->tail_units - 1) {
        const struct hak_slab *run =
            hak_slab_of(super->base + hak_lowest_bit(super->tail_units) * HAK_UNIT_BYTES);
        const size_t bytes = hak_run_tail_bytes(run);
        purged += hak_os_purge(run->base + run->bytes, bytes) ? bytes : 0;
        hak_count(&hak_arena.tail_bytes, (size_t)0 - bytes);
    }
    return purged;
}

static size_t purge_tails(struct hak_purge_age age, size_t limit)
{
    size_t purged = 0;
    while (purged < limit && hak_load_relaxed(&hak_arena.tail_bytes) != 0) {
        hak_lock_take(&hak_arena.lock);
        struct hak_super *super = arena_tailed_locked(age);
        purged += super != NULL ? super_purge_tails_locked(super) : 0;
        hak_lock_drop(&hak_arena.lock);
        if (super == NULL) {
            break;
        }
    }
    return purged;
}

// The system calls are made without the lock: the units are taken out meanwhile.
static size_t purge_units(struct hak_purge_age age, size_t limit)
{
    size_t purged = 0;
    hak_lock_take(&hak_arena.lock);
    while (purged < limit) {
        struct hak_super *super = arena_oldest_locked(age);
        if (super == NULL) {
            break;
        }
        const uint64_t bits = super_due_units(super, age);
        const size_t bytes = hak_count_bits(bits) * HAK_UNIT_BYTES;
        super->free_units &= ~bits;
        super->dirty_units &= ~bits;
        super->purging_units |= bits;
        hak_count(&hak_arena.dirty_bytes, (size_t)0 - bytes);
        hak_count(&hak_arena.free_bytes, (size_t)0 - bytes);
        hak_arena_note_gaps_locked(super);
        hak_lock_drop(&hak_arena.lock);
        const uint64_t done = super_purge(super, bits);
        hak_lock_take(&hak_arena.lock);
        super->purging_units &= ~bits;
        super->written_units &= ~done;
        hak_arena_free_units_locked(super, done, false);
        if (done != bits) { // or those that wait for longer would seem to have come just now
            hak_arena_free_units_locked(super, bits & ~done, true);
        }
        if (done == 0) {
            break; // locked in memory: trying again would not end
        }
        purged += bytes;
    }
    hak_lock_drop(&hak_arena.lock);
    return purged;
}

size_t hak_arena_purge(struct hak_purge_age age, size_t limit)
{
    const size_t purged = purge_units(age, limit);
    return purged < limit ? purged + purge_tails(age, limit - purged) : purged;
}

void hak_arena_forked_locked(void)
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

static void super_unmap_locked(struct hak_super *super)
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
