// arena.c -- see arena.h. Runs of units here; mappings of their own in lone.c; giving pages
// back in purge.c.
#include "slab/arena.h"

#include <limits.h>

#include "base/arms.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"
#include "os/pressure.h"
#include "slab/arena_locked.h"
#include "slab/defaults.h"
#include "slab/gaps.h"
#include "slab/harden.h"
#include "slab/huge_pages.h"
#include "slab/room.h"

struct hak_arena hak_arena;

bool hak_arena_start(void)
{
    hak_list_start(&hak_arena.all);
    hak_queues_start();
    return hak_gaps_start();
}

bool hak_arena_has_room(size_t bytes)
{
    const size_t limit = hak_load_relaxed(&hak_options.limit_hard);
    const size_t heap = hak_arena_heap_bytes();
    return HAK_LIKELY(limit == 0) || (heap <= limit && bytes <= limit - heap);
}

// What is mapped for a run of so many units is mostly that run's: 2 MiB, a huge page.
enum { HUGE_UNITS = 32 };

void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t mapped =
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.lone_bytes);
    if (mapped > hak_load_relaxed(&hak_arena.peak_bytes)) {
        hak_store_relaxed(&hak_arena.peak_bytes, mapped);
    }
}

void hak_arena_forget_peak(void)
{
    hak_lock_take(&hak_arena.lock);
    hak_store_relaxed(&hak_arena.peak_before, hak_load_relaxed(&hak_arena.used_peak));
    hak_store_relaxed(&hak_arena.used_peak, hak_arena_used_bytes());
    hak_lock_drop(&hak_arena.lock);
}

static struct hak_super *super_descriptor_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *super = hak_arena.spare_supers;
    if (super != NULL) {
        hak_arena.spare_supers = (struct hak_super *)(void *)super->base;
        return super;
    }
    return hak_pool_take(sizeof *super + HAK_SUPER_UNITS * sizeof super->slabs[0] +
                         sizeof(struct hak_super_place));
}

// Map the superslabs for a run of `units`. The slot of the first; UINT64_MAX when not all could be had.
static uint64_t arena_grow_locked(unsigned units) HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t count = (units + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
    const size_t bytes = count << HAK_SUPER_LOG2;
    if (hak_load_relaxed(&hak_arena.super_bytes) == 0) {
        hak_arena.huge_pages = hak_os_huge_pages();
    }
    if (hak_load_relaxed(&hak_arena.super_bytes) + bytes > HAK_SUPER_BYTES) {
        hak_defaults_fit_locked();
    }
    if (!hak_pressure_allows(bytes)) {
        return UINT64_MAX;
    }
    const bool wants_huge = hak_huge_wanted_locked(units >= HUGE_UNITS);
    char *base = hak_map_take(bytes);
    if (base == NULL) {
        return UINT64_MAX;
    }
    if (hak_harden_has_tags() && !hak_tags_map(base, bytes)) {
        hak_map_drop(base, bytes);
        return UINT64_MAX;
    }
    if (count > 1 && hak_map_slot(base) == UINT64_MAX) {
        hak_map_drop(base, bytes); // outside our window only one at a time is known by its start
        return UINT64_MAX;
    }
    if (wants_huge || hak_arena.huge_pages == HAK_HUGE_ALWAYS) {
        hak_os_want_huge(base, bytes, wants_huge);
    }
    hak_arena_read_clock();
    for (size_t done = 0; done < bytes; done += HAK_SUPER_BYTES) {
        struct hak_super *super = super_descriptor_locked();
        if (super == NULL) {
            hak_map_drop(base + done, bytes - done);
            return UINT64_MAX;
        }
        super->base = base + done;
        super->mapped_bytes = HAK_SUPER_BYTES;
        super->mapped_at = hak_load_relaxed(&hak_arena.clock);
        super->free_units = ~UINT64_C(0);
        super->dirty_units = 0;
        super->written_units = 0;
        super->purging_units = 0;
        super->purged_units = 0;
        hak_store_relaxed(&super->span, NULL);
        super->is_huge = wants_huge;
        super->is_huge_new = wants_huge;
        hak_list_append(&hak_arena.all, &super->all_link);
        hak_queues_add_locked(super);
        hak_count(&hak_arena.super_bytes, HAK_SUPER_BYTES);
        hak_count(&hak_arena.free_bytes, HAK_SUPER_BYTES);
        hak_map_publish(super->base, HAK_SUPER_BYTES, super);
        hak_arena_note_units_locked(super);
    }
    hak_arena_note_peak_locked();
    return hak_map_slot_of(base);
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

// Where in `super` a run fits; resident pages before untouched ones. 64: nowhere.
static unsigned super_find(const struct hak_super *super, unsigned units, uint64_t aligned)
{
    uint64_t starts = hak_bit_rows(super->dirty_units, units) & aligned;
    if (starts == 0) {
        starts = hak_bit_rows(super->free_units, units) & aligned;
    }
    return starts != 0 ? hak_lowest_bit(starts) : HAK_SUPER_UNITS;
}

static bool arena_find_inside_locked(uint64_t slot,
                                     unsigned units,
                                     unsigned align_units,
                                     unsigned looks,
                                     struct hak_gap *gap) HAK_REQUIRES(&hak_arena.lock)
{
    const bool at_start = align_units == HAK_SUPER_UNITS;
    const uint64_t aligned = align_units == 1 ? ~UINT64_C(0) : aligned_bits(align_units);
    unsigned row = units;
    do {
        slot = at_start ? hak_gaps_find_start(slot, row) : hak_gaps_find_inside(slot, row);
        if (slot == UINT64_MAX) {
            return false;
        }
        gap->slot = slot;
        gap->unit = super_find(hak_map_in_slot(slot), units, aligned);
        slot++; // the row is long enough, but may begin at the wrong place
        if (--looks == 0) {
            row = units + align_units - 1;
            row = row < HAK_SUPER_UNITS ? row : HAK_SUPER_UNITS;
        }
    } while (gap->unit == HAK_SUPER_UNITS);
    return true;
}

// A run up to here does not go on from one superslab into the next: one that does takes longer to
// find by an address in it.
#define INSIDE_MAX 8

// A gap for a run, in what there is from `slot` on. `looks`: see gaps.h.
static bool arena_look_locked(uint64_t slot,
                              unsigned units,
                              unsigned align_units,
                              unsigned looks,
                              struct hak_gap *gap) HAK_REQUIRES(&hak_arena.lock)
{
    return (units <= HAK_SUPER_UNITS &&
            arena_find_inside_locked(slot, units, align_units, looks, gap)) ||
           (units > INSIDE_MAX && hak_gaps_find_across(slot, units, align_units, looks, gap));
}

// A gap for a run, in what there is or in what is mapped for it.
static bool arena_find_locked(unsigned units, unsigned align_units, struct hak_gap *gap)
    HAK_REQUIRES(&hak_arena.lock)
{
    if (arena_look_locked(0, units, align_units, HAK_GAPS_LOOKS, gap)) {
        return true;
    }
    // What lies free before the place of the next mapping is a part of it, if it really comes there
    // and the alignment allows it.
    const unsigned before = units > INSIDE_MAX ? hak_gaps_before(hak_map.next_slot) : 0;
    const unsigned missing = before < units ? units - before : units;
    uint64_t slot = arena_grow_locked(missing);
    if (slot != UINT64_MAX) {
        const uint64_t first = slot - (before + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
        if (arena_look_locked(first < slot ? first : slot, units, align_units, UINT_MAX, gap)) {
            return true;
        }
        slot = arena_grow_locked(units);
    }
    // Without memory every row that there is may be looked at.
    return arena_look_locked(slot != UINT64_MAX ? slot : 0, units, align_units, UINT_MAX, gap);
}

// The units that become resident with `bits`: those that share a huge page with them.
static uint64_t super_touched_units(const struct hak_super *super, uint64_t bits)
{
    const uint64_t low = UINT64_C(0xFFFFFFFF); // the units of the first huge page
    const uint64_t pages = ((bits & low) != 0 ? low : 0) | ((bits & ~low) != 0 ? ~low : 0);
    return super->is_huge ? pages : bits;
}

// The free units that share a huge page with `bits` will be resident with them.
static void super_dirty_neighbours_locked(struct hak_super *super, uint64_t bits)
    HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t more =
        super->free_units & super_touched_units(super, bits) & ~super->dirty_units;
    super->dirty_units |= more;
    super->purged_units &= ~more;
    hak_arena_note_dirty_locked(super);
    hak_super_count_dirty(super, hak_count_bits(more) * HAK_UNIT_BYTES);
}

static void super_use_locked(struct hak_super *super, uint64_t bits) HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t dirty = super->dirty_units & bits;
    const uint64_t again = super->purged_units & bits;
    super->purged_units &= ~bits;
    if (again != 0) {
        const size_t bytes = hak_count_bits(again) * HAK_UNIT_BYTES;
        hak_count(&hak_arena.retaken_bytes, bytes);
        hak_count(&hak_arms.retaken_bytes[hak_super_group(super)], bytes);
    }
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    hak_super_count_dirty(super, (size_t)0 - hak_count_bits(dirty) * HAK_UNIT_BYTES);
    if (super->is_huge) {
        super_dirty_neighbours_locked(super, bits);
    }
    hak_count(&hak_arena.free_bytes, (size_t)0 - hak_count_bits(bits) * HAK_UNIT_BYTES);
    const size_t used = hak_arena_used_bytes();
    if (used > hak_load_relaxed(&hak_arena.used_peak)) {
        hak_store_relaxed(&hak_arena.used_peak, used);
    }
    hak_arena_note_units_locked(super);
}

void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty)
    HAK_REQUIRES(&hak_arena.lock)
{
    super->free_units |= bits;
    if (dirty) {
        super->dirty_units |= bits;
        super->written_units |= bits;
        hak_arena_note_dirty_locked(super);
        hak_super_count_dirty(super, hak_count_bits(bits) * HAK_UNIT_BYTES);
        if (super->tail_units != 0) {
            hak_super_note_tails_locked(super);
        }
    }
    hak_count(&hak_arena.free_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_arena_note_units_locked(super);
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

// May the pages of a free run be there? Those that are, are counted already.
static bool run_has_room_locked(struct hak_super *head, unsigned unit, unsigned units)
    HAK_REQUIRES(&hak_arena.lock)
{
    size_t fresh = 0;
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        const uint64_t touched = super_touched_units(part.super, part.bits);
        fresh += hak_count_bits(part.super->free_units & touched & ~part.super->dirty_units);
    }
    return hak_room_allows_locked(fresh * HAK_UNIT_BYTES);
}

// Take the units out of what is free. True when none of them may be resident. `*huge`: the first page of those
// that ask for huge pages and that nobody has touched since, or NULL.
static bool run_use_locked(struct hak_super *head, unsigned unit, unsigned units, char **huge)
    HAK_REQUIRES(&hak_arena.lock)
{
    bool zeroed = true;
    *huge = NULL;
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        struct hak_super *super = part.super;
        hak_huge_decide_locked(super);
        if (super->is_huge_new && *huge == NULL) {
            *huge = super->base + hak_lowest_bit(part.bits) * HAK_UNIT_BYTES;
        }
        super->is_huge_new = false;
        zeroed &= (super->written_units & part.bits) == 0;
        super_use_locked(super, part.bits);
        if (super != head) {
            hak_store_relaxed(&super->span, head);
        }
    }
    return zeroed;
}

// Without the lock: see what `*huge` above costs. When it is dear, all of the run goes on with small pages.
static void run_try_huge(struct hak_super *head, unsigned unit, unsigned units, char *huge)
{
    if (huge == NULL || !hak_huge_is_dear(huge)) {
        return;
    }
    hak_lock_take(&hak_arena.lock);
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        hak_huge_end_locked(part.super);
    }
    hak_lock_drop(&hak_arena.lock);
}

static void run_free_locked(struct hak_super *head, unsigned unit, unsigned units)
    HAK_REQUIRES(&hak_arena.lock)
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
    HAK_REQUIRES(&hak_arena.lock)
{
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part); i++) {
        if (part.super == NULL || (part.super->free_units & part.bits) != part.bits) {
            return false;
        }
    }
    return true;
}

// Map the superslabs that are missing behind a run that wants to grow, if all before them is free and
// the next mapping comes there anyway.
static bool run_map_more_locked(struct hak_super *head, unsigned unit, unsigned units)
    HAK_REQUIRES(&hak_arena.lock)
{
    unsigned present = 0;
    struct part part;
    for (unsigned i = 0; run_part(head, unit, units, i, &part) && part.super != NULL; i++) {
        if ((part.super->free_units & part.bits) != part.bits) {
            return false;
        }
        present += hak_count_bits(part.bits);
    }
    const char *missing = head->base + (unit + present) * HAK_UNIT_BYTES;
    return present < units && hak_map_slot(missing) == hak_map.next_slot &&
           arena_grow_locked(units - present) != UINT64_MAX;
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

static unsigned units_for(size_t bytes)
{
    return (unsigned)((bytes + HAK_UNIT_BYTES - 1) >> HAK_UNIT_LOG2);
}

struct hak_slab *hak_arena_take(size_t bytes, unsigned align_units, enum hak_slab_state state)
{
    const unsigned units = units_for(bytes);
    struct hak_gap gap;
    hak_lock_take(&hak_arena.lock);
    if (!hak_arena_has_room(units * HAK_UNIT_BYTES) ||
        !arena_find_locked(units, align_units, &gap) ||
        !run_has_room_locked(hak_map_in_slot(gap.slot), gap.unit, units)) {
        hak_lock_drop(&hak_arena.lock);
        return NULL;
    }
    struct hak_super *super = hak_map_in_slot(gap.slot);
    struct hak_slab *run = &super->slabs[gap.unit];
    run->units = (uint16_t)units;
    run->bytes = bytes;
    run->size_class = HAK_SMALL_CLASSES; // no small one, unless it becomes a slab
    run->base = super->base + gap.unit * HAK_UNIT_BYTES;
    hak_list_start(&run->link);
    super_name_run(super, gap.unit, units);
    super->made_at[gap.unit] = hak_load_relaxed(&hak_arena.clock);
    char *huge;
    run->zeroed = run_use_locked(super, gap.unit, units, &huge);
    hak_run_note_tail_locked(run, false);
    run->state = (uint8_t)state;
    hak_count(&hak_arena.slab_bytes, state == HAK_SLAB_NONE ? units * HAK_UNIT_BYTES : 0);
    hak_lock_drop(&hak_arena.lock);
    run_try_huge(super, gap.unit, units, huge);
    return run;
}

void hak_arena_give(struct hak_slab *run)
{
    hak_lock_take(&hak_arena.lock);
    const size_t of_slab = run->state == HAK_SLAB_SMALL ? run->units * HAK_UNIT_BYTES : 0;
    hak_count(&hak_arena.slab_bytes, (size_t)0 - of_slab);
    run->state = HAK_SLAB_NONE;
    hak_run_forget_tail_locked(run);
    run_free_locked(run_super(run), run_unit(run), run->units);
    hak_lock_drop(&hak_arena.lock);
}

// Under the lock also when no unit changes hands: the tail must not be given back while the user
// gets it.
bool hak_arena_resize(struct hak_slab *run, size_t bytes)
{
    const unsigned units = units_for(bytes);
    bool done = true;
    char *huge = NULL;
    hak_lock_take(&hak_arena.lock);
    struct hak_super *super = run_super(run);
    const unsigned unit = run_unit(run);
    const unsigned before = run->units;
    const unsigned more = units > before ? units - before : 0;
    if (more > 0) {
        const unsigned end = unit + before;
        done = hak_arena_has_room(more * HAK_UNIT_BYTES) &&
               (run_is_free_locked(super, end, more) ||
                (run_map_more_locked(super, end, more) && run_is_free_locked(super, end, more))) &&
               run_has_room_locked(super, end, more);
    }
    if (done) {
        hak_run_forget_tail_locked(run);
        if (units < run->units) {
            run_free_locked(super, unit + units, run->units - units);
        } else if (more > 0) {
            run_use_locked(super, unit + before, more, &huge);
            super_name_run(super, unit, units);
        }
        run->units = (uint16_t)units;
        run->bytes = bytes;
        hak_run_note_tail_locked(run, true);
    }
    hak_lock_drop(&hak_arena.lock);
    run_try_huge(super, unit + before, more, huge);
    return done;
}
