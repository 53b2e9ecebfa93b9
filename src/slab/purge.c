// purge.c -- giving pages and addresses back (see arena.h).
#include <string.h>

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
            memset(&super->touched_kib[unit], 0, count);
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
    for (unsigned bucket = 0; bucket <= HAK_ARENA_TOP_BUCKET; bucket++) {
        struct hak_list *list = &hak_arena.by_run[bucket];
        for (struct hak_list *link = list->next; link != list; link = link->next) {
            struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, link);
            if (super_due_units(super, age) != 0 &&
                (oldest == NULL || super->dirty_tick < oldest->dirty_tick)) {
                oldest = super;
            }
        }
    }
    return oldest;
}

// The system calls are made without the lock: the units are taken out meanwhile.
size_t hak_arena_purge(struct hak_purge_age age, size_t limit)
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
        hak_arena_relink_locked(super);
        hak_lock_drop(&hak_arena.lock);
        const uint64_t done = super_purge(super, bits);
        hak_lock_take(&hak_arena.lock);
        super->purging_units &= ~bits;
        super->written_units &= ~done;
        hak_arena_free_units_locked(super, done, false);
        hak_arena_free_units_locked(super, bits & ~done, true);
        if (done == 0) {
            break; // locked in memory: trying again would not end
        }
        purged += bytes;
    }
    hak_lock_drop(&hak_arena.lock);
    return purged;
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
    hak_arena_relink_locked(super);
    super->base = (char *)hak_arena.spare_supers;
    hak_arena.spare_supers = super;
}

size_t hak_arena_trim(void)
{
    hak_lock_take(&hak_arena.lock);
    const size_t before = hak_load_relaxed(&hak_arena.super_bytes);
    struct hak_list *list = &hak_arena.by_run[HAK_ARENA_TOP_BUCKET];
    for (struct hak_list *link = list->next; link != list;) {
        struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, link);
        link = link->next;
        if (super->free_units == ~UINT64_C(0)) {
            super_unmap_locked(super);
        }
    }
    const size_t after = hak_load_relaxed(&hak_arena.super_bytes);
    hak_lock_drop(&hak_arena.lock);
    return before - after;
}
