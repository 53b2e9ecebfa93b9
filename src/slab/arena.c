// arena.c -- see arena.h. Runs of units here; mappings of their own in lone.c; giving pages
// back in purge.c.
#include "slab/arena.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"
#include "slab/arena_locked.h"

struct hak_arena hak_arena;

void hak_arena_start(void)
{
    for (unsigned i = 0; i < sizeof hak_arena.by_run / sizeof hak_arena.by_run[0]; i++) {
        hak_list_start(&hak_arena.by_run[i]);
    }
    hak_list_start(&hak_arena.all);
}

// Bits at which `count` set bits in a row begin: halves the length in each step.
static uint64_t run_starts(uint64_t bits, unsigned count)
{
    while (count > 1) {
        unsigned half = count / 2;
        bits &= bits >> half;
        count -= half;
    }
    return bits;
}

static unsigned longest_run(uint64_t bits)
{
    unsigned length = 0;
    for (; bits != 0; bits &= bits >> 1) {
        length++;
    }
    return length;
}

void hak_arena_relink_locked(struct hak_super *super)
{
    hak_list_remove(&super->link);
    if (super->free_units != 0) {
        unsigned bucket = hak_highest_bit(longest_run(super->free_units));
        hak_list_push(&hak_arena.by_run[bucket], &super->link);
    }
}

static void super_ask_for_huge_pages(struct hak_super *super)
{
    if (hak_arena.huge_pages == HAK_HUGE_NEVER) {
        return;
    }
    // A heap that has filled this much is growing and dense: units are handed out from
    // the bottom of the fullest superslab, so all earlier ones are in use.
    size_t used = hak_load_relaxed(&hak_arena.super_bytes) - hak_load_relaxed(&hak_arena.free_bytes);
    bool wanted = used >= hak_options.huge_start_bytes;
    if (wanted || hak_arena.huge_pages == HAK_HUGE_ALWAYS) {
        hak_os_want_huge(super->base, HAK_SUPER_BYTES, wanted);
    }
    super->wants_huge = wanted;
}

static struct hak_super *super_make_locked(void)
{
    struct hak_super *super = hak_arena.spare_supers;
    if (super != NULL) {
        hak_arena.spare_supers = (struct hak_super *)(void *)super->base;
    } else {
        super = hak_pool_take(sizeof *super + HAK_SUPER_UNITS * sizeof super->slabs[0]);
        if (super == NULL) {
            return NULL;
        }
    }
    char *base = hak_map_take(HAK_SUPER_BYTES);
    if (base == NULL) {
        super->base = (char *)hak_arena.spare_supers;
        hak_arena.spare_supers = super;
        return NULL;
    }
    if (hak_load_relaxed(&hak_arena.super_bytes) == 0) {
        hak_arena.huge_pages = hak_os_huge_pages();
    }
    super->base = base;
    super->mapped_bytes = HAK_SUPER_BYTES;
    super->free_units = ~UINT64_C(0);
    super->dirty_units = 0;
    hak_list_start(&super->link);
    hak_list_append(&hak_arena.all, &super->all_link);
    super_ask_for_huge_pages(super);
    hak_count(&hak_arena.super_bytes, HAK_SUPER_BYTES);
    hak_count(&hak_arena.free_bytes, HAK_SUPER_BYTES);
    hak_map_publish(base, super);
    hak_arena_relink_locked(super);
    return super;
}

// Where in `super` a run fits; resident pages before untouched ones. 64: nowhere.
static unsigned super_find(const struct hak_super *super, unsigned units, uint64_t aligned)
{
    uint64_t starts = run_starts(super->dirty_units, units) & aligned;
    if (starts == 0) {
        starts = run_starts(super->free_units, units) & aligned;
    }
    return starts != 0 ? hak_lowest_bit(starts) : HAK_SUPER_UNITS;
}

// A superslab with room for the run, the one with the shortest sufficient gaps first.
static struct hak_super *arena_find_locked(unsigned units, uint64_t aligned, unsigned *unit)
{
    for (unsigned bucket = hak_highest_bit(units); bucket <= HAK_ARENA_TOP_BUCKET; bucket++) {
        struct hak_list *list = &hak_arena.by_run[bucket];
        // In the first bucket (and with alignment) a superslab may not fit after all: look at a few.
        unsigned looks = 32;
        for (struct hak_list *link = list->next; link != list && looks > 0; link = link->next, looks--) {
            struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, link);
            *unit = super_find(super, units, aligned);
            if (*unit < HAK_SUPER_UNITS) {
                return super;
            }
        }
    }
    *unit = 0;
    return super_make_locked();
}

// The units at multiples of `align_units`, as bits.
static uint64_t aligned_bits(unsigned align_units)
{
    uint64_t bits = 0;
    for (unsigned unit = 0; unit < HAK_SUPER_UNITS; unit += align_units) {
        bits |= UINT64_C(1) << unit;
    }
    return bits;
}

static void super_use_locked(struct hak_super *super, uint64_t bits)
{
    uint64_t dirty = super->dirty_units & bits;
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    hak_count(&hak_arena.dirty_bytes, (size_t)0 - hak_count_bits(dirty) * HAK_UNIT_BYTES);
    hak_count(&hak_arena.free_bytes, (size_t)0 - hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_arena_relink_locked(super);
}

void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty)
{
    super->free_units |= bits;
    if (dirty) {
        super->dirty_units |= bits;
        super->dirty_tick = hak_load_relaxed(&hak_arena.tick);
        hak_count(&hak_arena.dirty_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    }
    hak_count(&hak_arena.free_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_arena_relink_locked(super);
}

static void super_name_run(struct hak_super *super, unsigned unit, unsigned units)
{
    for (unsigned i = 0; i < units; i++) {
        super->first[unit + i] = (uint8_t)unit;
    }
}

struct hak_slab *hak_arena_take(unsigned units, unsigned align_units)
{
    const uint64_t aligned = align_units == 1 ? ~UINT64_C(0) : aligned_bits(align_units);
    unsigned unit;
    hak_lock_take(&hak_arena.lock);
    struct hak_super *super = arena_find_locked(units, aligned, &unit);
    if (super == NULL) {
        hak_lock_drop(&hak_arena.lock);
        return NULL;
    }
    const uint64_t bits = hak_bit_range(unit, units);
    struct hak_slab *run = &super->slabs[unit];
    run->zeroed = (super->dirty_units & bits) == 0;
    run->units = (uint8_t)units;
    run->base = super->base + unit * HAK_UNIT_BYTES;
    hak_list_start(&run->link);
    super_name_run(super, unit, units);
    super_use_locked(super, bits);
    hak_lock_drop(&hak_arena.lock);
    return run;
}

void hak_arena_give(struct hak_slab *run)
{
    struct hak_super *super = hak_map_super(run->base);
    const unsigned unit = (unsigned)(run - super->slabs);
    hak_lock_take(&hak_arena.lock);
    run->state = HAK_SLAB_NONE;
    hak_arena_free_units_locked(super, hak_bit_range(unit, run->units), true);
    hak_lock_drop(&hak_arena.lock);
}

bool hak_arena_resize(struct hak_slab *run, unsigned units)
{
    struct hak_super *super = hak_map_super(run->base);
    const unsigned unit = (unsigned)(run - super->slabs);
    bool done = true;
    hak_lock_take(&hak_arena.lock);
    if (units < run->units) {
        hak_arena_free_units_locked(
            super, hak_bit_range(unit + units, (unsigned)run->units - units), true);
    } else if (unit + units > HAK_SUPER_UNITS) {
        done = false;
    } else if (units > run->units) {
        const uint64_t bits = hak_bit_range(unit + run->units, units - run->units);
        done = (super->free_units & bits) == bits;
        if (done) {
            super_name_run(super, unit, units);
            super_use_locked(super, bits);
        }
    }
    if (done) {
        run->units = (uint8_t)units;
    }
    hak_lock_drop(&hak_arena.lock);
    return done;
}
