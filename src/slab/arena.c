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
#include "slab/defaults.h"

struct hak_arena hak_arena;

void hak_arena_start(void)
{
    for (unsigned i = 0; i < sizeof hak_arena.by_run / sizeof hak_arena.by_run[0]; i++) {
        hak_list_start(&hak_arena.by_run[i]);
    }
    hak_list_start(&hak_arena.all);
    hak_list_start(&hak_arena.outside);
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

// log2 of the longest run of set bits, rounded down; there is one.
static unsigned longest_run_log2(uint64_t bits)
{
    unsigned log2 = 0;
    while (log2 < HAK_ARENA_TOP_BUCKET && (bits &= bits >> (1U << log2)) != 0) {
        log2++;
    }
    return log2;
}

void hak_arena_relink_locked(struct hak_super *super)
{
    const uint64_t slot = hak_map_slot(super->base);
    if (slot != UINT64_MAX) {
        hak_map_mark_free(slot, super->free_units == ~UINT64_C(0));
    }
    hak_list_remove(&super->link);
    if (super->free_units != 0) {
        hak_list_push(&hak_arena.by_run[longest_run_log2(super->free_units)], &super->link);
    }
}

bool hak_arena_wants_huge_locked(bool for_one_block)
{
    const size_t mapped =
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.lone_bytes);
    const size_t used = mapped - hak_load_relaxed(&hak_arena.free_bytes);
    // Dense in units, unless all of it is for one block; then dense in pages, which costs system calls.
    return hak_arena.huge_pages != HAK_HUGE_NEVER &&
           used >= hak_load_relaxed(&hak_options.huge_start_bytes) &&
           (for_one_block || used >= mapped / 4 * 3) && hak_os_resident_bytes() >= used / 4 * 3;
}

static struct hak_super *super_descriptor_locked(void)
{
    struct hak_super *super = hak_arena.spare_supers;
    if (super != NULL) {
        hak_arena.spare_supers = (struct hak_super *)(void *)super->base;
        return super;
    }
    return hak_pool_take(sizeof *super + HAK_SUPER_UNITS * sizeof super->slabs[0]);
}

// Map `count` superslabs in a row. False when not all could be had.
static bool arena_grow_locked(uint64_t count)
{
    const size_t bytes = count << HAK_SUPER_LOG2;
    if (hak_load_relaxed(&hak_arena.super_bytes) == 0) {
        hak_arena.huge_pages = hak_os_huge_pages();
    }
    if (hak_load_relaxed(&hak_arena.super_bytes) + bytes > HAK_SUPER_BYTES) {
        hak_defaults_fit_locked();
    }
    const bool wants_huge = hak_arena_wants_huge_locked(count > 1);
    char *base = hak_map_take(bytes);
    if (base == NULL) {
        return false;
    }
    if (count > 1 && hak_map_slot(base) == UINT64_MAX) {
        hak_map_give(base, bytes); // outside our window only one at a time is known by its start
        return false;
    }
    if (wants_huge || hak_arena.huge_pages == HAK_HUGE_ALWAYS) {
        hak_os_want_huge(base, bytes, wants_huge);
    }
    for (size_t done = 0; done < bytes; done += HAK_SUPER_BYTES) {
        struct hak_super *super = super_descriptor_locked();
        if (super == NULL) {
            hak_map_give(base + done, bytes - done);
            return false;
        }
        super->base = base + done;
        super->mapped_bytes = HAK_SUPER_BYTES;
        super->free_units = ~UINT64_C(0);
        super->dirty_units = 0;
        super->written_units = 0;
        super->purging_units = 0;
        hak_store_relaxed(&super->span, NULL);
        super->is_huge = wants_huge;
        hak_list_start(&super->link);
        hak_list_append(&hak_arena.all, &super->all_link);
        hak_count(&hak_arena.super_bytes, HAK_SUPER_BYTES);
        hak_count(&hak_arena.free_bytes, HAK_SUPER_BYTES);
        hak_map_publish(super->base, HAK_SUPER_BYTES, super);
        hak_arena_relink_locked(super);
    }
    return true;
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
        for (struct hak_list *link = list->next; link != list && looks > 0;
             link = link->next, looks--) {
            struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, link);
            *unit = super_find(super, units, aligned);
            if (*unit < HAK_SUPER_UNITS) {
                return super;
            }
        }
    }
    *unit = 0;
    if (!arena_grow_locked(1)) {
        return NULL;
    }
    return HAK_LIST_ITEM(hak_arena.by_run[HAK_ARENA_TOP_BUCKET].next, struct hak_super, link);
}

// The first of the free superslabs in a row that a run longer than one needs.
static struct hak_super *arena_find_span_locked(unsigned units)
{
    const uint64_t count = (units + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
    uint64_t slot = hak_map_find_free(count);
    if (slot == UINT64_MAX) {
        const uint64_t tail = hak_map_free_tail();
        if (tail < count && arena_grow_locked(count - tail)) {
            slot = hak_map_find_free(count);
        }
    }
    if (slot == UINT64_MAX && arena_grow_locked(count)) { // the tail was not next to it
        slot = hak_map_find_free(count);
    }
    return slot != UINT64_MAX ? hak_map_in_slot(slot) : NULL;
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

// The free units that share a huge page with `bits` will be resident with them.
static void super_dirty_neighbours_locked(struct hak_super *super, uint64_t bits)
{
    const uint64_t low = UINT64_C(0xFFFFFFFF); // the units of the first huge page
    const uint64_t pages = ((bits & low) != 0 ? low : 0) | ((bits & ~low) != 0 ? ~low : 0);
    const uint64_t more = super->free_units & pages & ~super->dirty_units;
    super->dirty_units |= more;
    super->dirty_tick = hak_load_relaxed(&hak_arena.tick);
    hak_count(&hak_arena.dirty_bytes, hak_count_bits(more) * HAK_UNIT_BYTES);
}

static void super_use_locked(struct hak_super *super, uint64_t bits)
{
    uint64_t dirty = super->dirty_units & bits;
    hak_count(&hak_arena.clean_bytes, hak_count_bits(bits & ~dirty) * HAK_UNIT_BYTES);
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    hak_count(&hak_arena.dirty_bytes, (size_t)0 - hak_count_bits(dirty) * HAK_UNIT_BYTES);
    if (super->is_huge) {
        super_dirty_neighbours_locked(super, bits);
    }
    hak_count(&hak_arena.free_bytes, (size_t)0 - hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_arena_relink_locked(super);
}

void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty)
{
    super->free_units |= bits;
    if (dirty) {
        super->dirty_units |= bits;
        super->written_units |= bits;
        super->dirty_tick = hak_load_relaxed(&hak_arena.tick);
        hak_count(&hak_arena.dirty_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    }
    hak_count(&hak_arena.free_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_arena_relink_locked(super);
}

// The part of a run that lies in one superslab.
struct part {
    struct hak_super *super; // NULL when there is none of ours at that address
    uint64_t bits;
};

// The `index`-th part of `units` units from `unit` on, counted from the first of `head`, which may be
// beyond it. False after the last.
static bool run_part(
    struct hak_super *head, unsigned unit, unsigned units, unsigned index, struct part *part)
{
    const unsigned end = unit + units;
    const unsigned number = unit / HAK_SUPER_UNITS + index; // of the superslab, from head on
    const unsigned from = number * HAK_SUPER_UNITS;
    const unsigned low = unit > from ? unit : from;
    if (low >= end) {
        return false;
    }
    const unsigned high = end < from + HAK_SUPER_UNITS ? end : from + HAK_SUPER_UNITS;
    char *base = head->base + number * HAK_SUPER_BYTES;
    struct hak_super *super = hak_map_super(base);
    part->super = super != NULL && !super->is_lone && super->base == base ? super : NULL;
    part->bits = hak_bit_range(low % HAK_SUPER_UNITS, high - low);
    return true;
}

// Take the units out of what is free. True when none of them may be resident.
static bool run_use_locked(struct hak_super *head, unsigned unit, unsigned units)
{
    bool zeroed = true;
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        zeroed &= (part.super->written_units & part.bits) == 0;
        super_use_locked(part.super, part.bits);
        if (part.super != head) {
            hak_store_relaxed(&part.super->span, head);
        }
    }
    return zeroed;
}

static void run_free_locked(struct hak_super *head, unsigned unit, unsigned units)
{
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        // A superslab of which the run keeps a part goes on being its span.
        if (part.super != head && (part.bits & 1) != 0) {
            hak_store_relaxed(&part.super->span, NULL);
        }
        hak_arena_free_units_locked(part.super, part.bits, true);
    }
}

static bool run_is_free_locked(struct hak_super *head, unsigned unit, unsigned units)
{
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        if (part.super == NULL || (part.super->free_units & part.bits) != part.bits) {
            return false;
        }
    }
    return true;
}

static void super_name_run(struct hak_super *super, unsigned unit, unsigned units)
{
    for (unsigned i = unit; i < unit + units && i < HAK_SUPER_UNITS; i++) {
        super->first[i] = (uint8_t)unit;
    }
}

static struct hak_super *run_super(const struct hak_slab *run)
{
    return hak_map_super(run->base);
}

static unsigned run_unit(const struct hak_slab *run)
{
    return (unsigned)(run - run_super(run)->slabs);
}

// A superslab that was mapped when the heap was small, and is wholly free and untouched, can
// still ask for huge pages.
static void super_reconsider_locked(struct hak_super *super)
{
    if (!super->is_huge && super->free_units == ~UINT64_C(0) && super->dirty_units == 0 &&
        hak_arena_wants_huge_locked(false)) {
        hak_os_want_huge(super->base, HAK_SUPER_BYTES, true);
        super->is_huge = true;
    }
}

struct hak_slab *hak_arena_take(unsigned units, unsigned align_units)
{
    const uint64_t aligned = align_units == 1 ? ~UINT64_C(0) : aligned_bits(align_units);
    unsigned unit = 0;
    hak_lock_take(&hak_arena.lock);
    struct hak_super *super = units <= HAK_SUPER_UNITS ? arena_find_locked(units, aligned, &unit)
                                                       : arena_find_span_locked(units);
    if (super == NULL) {
        hak_lock_drop(&hak_arena.lock);
        return NULL;
    }
    super_reconsider_locked(super);
    struct hak_slab *run = &super->slabs[unit];
    run->units = (uint16_t)units;
    run->base = super->base + unit * HAK_UNIT_BYTES;
    hak_list_start(&run->link);
    super_name_run(super, unit, units);
    run->zeroed = run_use_locked(super, unit, units);
    hak_lock_drop(&hak_arena.lock);
    return run;
}

// Large blocks from this size on are touched sparsely more often than not.
#define TOUCHED_MAX HAK_KIB(256)

// What may be resident of each unit of a run now.
static void run_note_touched_locked(const struct hak_slab *run, size_t bytes)
{
    if (bytes > TOUCHED_MAX) {
        return;
    }
    struct part part = {0};
    struct hak_super *super = run_super(run);
    for (unsigned i = 0; run_part(super, run_unit(run), run->units, i, &part); i++) {
        for (uint64_t bits = part.bits; bits != 0; bits &= bits - 1) {
            part.super->touched_kib[hak_lowest_bit(bits)] = HAK_UNIT_BYTES / 1024;
        }
    }
    const size_t rest = run->units * HAK_UNIT_BYTES - bytes;
    part.super->touched_kib[hak_highest_bit(part.bits)] = (uint8_t)((HAK_UNIT_BYTES - rest) / 1024);
}

size_t hak_arena_touched_tail(const struct hak_slab *run)
{
    const char *last = run->base + (run->units - 1U) * HAK_UNIT_BYTES;
    const struct hak_super *super = hak_map_super(last);
    return (run->units - 1U) * HAK_UNIT_BYTES +
           super->touched_kib[(size_t)(last - super->base) / HAK_UNIT_BYTES] * HAK_KIB(1);
}

void hak_arena_give(struct hak_slab *run, size_t bytes)
{
    hak_lock_take(&hak_arena.lock);
    run->state = HAK_SLAB_NONE;
    run_note_touched_locked(run, bytes);
    run_free_locked(run_super(run), run_unit(run), run->units);
    hak_lock_drop(&hak_arena.lock);
}

bool hak_arena_resize(struct hak_slab *run, unsigned units)
{
    bool done = true;
    hak_lock_take(&hak_arena.lock);
    struct hak_super *super = run_super(run);
    const unsigned unit = run_unit(run);
    const unsigned more = units > run->units ? units - run->units : 0;
    if (units < run->units) {
        run_free_locked(super, unit + units, run->units - units);
    } else if (more > 0) {
        done = run_is_free_locked(super, unit + run->units, more);
        if (done) {
            run_use_locked(super, unit + run->units, more);
            super_name_run(super, unit, units);
        }
    }
    if (done) {
        run->units = (uint16_t)units;
    }
    hak_lock_drop(&hak_arena.lock);
    return done;
}
