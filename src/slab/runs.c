// runs.c -- see runs.h.
#include "slab/runs.h"

#include "base/bits.h"
#include "meta/map.h"
#include "os/refusal.h"
#include "os/tags.h"
#include "slab/collapse.h"
#include "slab/find.h"
#include "slab/hooks.h"
#include "slab/huge_pages.h"
#include "slab/outside.h"
#include "slab/superslabs.h"
#include "slab/units.h"

static bool run_has(const struct hak_run *run, const void *p)
{
    return run->state != HAK_RUN_NONE && hak_run_spans(run, p);
}

// The run that continues beyond `super`: the last run in it.
static struct hak_run *span_of(const struct hak_super *super)
{
    return (struct hak_run *)&super->slabs[super->first[HAK_SUPER_UNITS - 1]];
}

// The superslab, or the large block's own mapping, that contains `p`.
static struct hak_super *super_of(const void *p)
{
    struct hak_super *super = hak_map_super(p);
    if (HAK_LIKELY(super != NULL && (uintptr_t)p - (uintptr_t)super->base < super->mapped_bytes)) {
        return super;
    }
    return HAK_UNLIKELY(!hak_map_has_window_only()) ? hak_outside_find(p) : NULL;
}

struct hak_run *hak_run_of(const void *p)
{
    p = hak_tag_off(p);
    struct hak_super *super = super_of(p);
    if (super == NULL) {
        return NULL;
    }
    struct hak_run *run = &super->slabs[0];
    if (!super->is_mapping) {
        const size_t unit = ((uintptr_t)p - (uintptr_t)super->base) / HAK_UNIT_BYTES;
        run = &super->slabs[super->first[unit]];
        if (HAK_UNLIKELY(!run_has(run, p))) {
            const struct hak_super *start = hak_load_relaxed(&super->span);
            run = start != NULL ? span_of(start) : run;
            if (!run_has(run, p)) {
                return NULL;
            }
        }
    }
    return run->state != HAK_RUN_NONE ? run : NULL;
}

size_t hak_run_ended_bytes(const void *p)
{
    p = hak_tag_off(p);
    const struct hak_super *super = super_of(p);
    if (super == NULL || super->is_mapping) {
        return 0;
    }
    const size_t unit = ((uintptr_t)p - (uintptr_t)super->base) / HAK_UNIT_BYTES;
    const struct hak_run *run = &super->slabs[super->first[unit]];
    const bool has_ended =
        run->state == HAK_RUN_NONE && run->units != 0 && unit - super->first[unit] < run->units;
    if (has_ended && run->size_class < HAK_SMALL_CLASSES) {
        return hak_classes[run->size_class].bytes;
    }
    return has_ended && run->base == p ? run->bytes : 0;
}

// The units of huge pages that become resident when `bits` are touched.
static uint64_t super_huge_units(const struct hak_super *super, uint64_t bits)
{
    return super->huge_units & hak_super_pages_of(bits);
}

// The part of a run that lies in one superslab.
struct part {
    struct hak_super *super; // NULL if the shard has no superslab there
    uint64_t bits;
};

// The `index`-th part of a run of `units` units. `unit` counts from the first unit of `head`, and may
// lie beyond it. False after the last part.
static bool run_part(const struct hak_shard *shard,
                     struct hak_super *head,
                     unsigned unit,
                     unsigned units,
                     unsigned index,
                     struct part *part)
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
    const bool is_ours = super != NULL && hak_load_relaxed(&super->shard) == shard->number;
    part->super = is_ours && super->base == base ? super : NULL;
    part->bits = hak_bit_range(low % HAK_SUPER_UNITS, high - low);
    return true;
}

// May the pages of a free run become resident? Dirty ones are counted already.
static bool run_has_room_locked(struct hak_shard *shard,
                                struct hak_super *head,
                                unsigned unit,
                                unsigned units) HAK_REQUIRES(&shard->lock)
{
    size_t fresh = 0;
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part); i++) {
        const uint64_t touched = part.bits | super_huge_units(part.super, part.bits);
        fresh += hak_count_bits(part.super->free_units & touched & ~part.super->dirty_units);
    }
    const size_t bytes = fresh * HAK_UNIT_BYTES;
    if (HAK_UNLIKELY(bytes > shard->credit_bytes)) {
        return hak_hook_lend_locked(shard, bytes);
    }
    shard->credit_bytes -= bytes;
    return true;
}

// The state of units when they were taken.
struct taken {
    bool zeroed; // all of them read as zero
    char *huge;  // the first untouched unit on a page that asks to be huge; or NULL
};

// Take the units out of the free units.
static struct taken run_use_locked(struct hak_shard *shard,
                                   struct hak_super *head,
                                   unsigned unit,
                                   unsigned units,
                                   bool wants_huge) HAK_REQUIRES(&shard->lock)
{
    struct taken taken = {.zeroed = true, .huge = NULL};
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part); i++) {
        struct hak_super *super = part.super;
        hak_huge_pages_decide_locked(shard, super, part.bits, wants_huge);
        const uint64_t fresh = super->huge_new_units & part.bits;
        if (fresh != 0 && taken.huge == NULL) {
            taken.huge = super->base + hak_lowest_bit(fresh) * HAK_UNIT_BYTES;
        }
        super->huge_new_units &= ~hak_super_pages_of(fresh);
        taken.zeroed &= (super->written_units & part.bits) == 0;
        hak_units_use_locked(shard, super, part.bits, super_huge_units(super, part.bits));
        if (super != head) {
            hak_store_relaxed(&super->span, head);
        }
    }
    return taken;
}

// Touch `huge` above, without the lock. If that was expensive, the whole run uses small pages. Else older memory may get a huge
// page, too.
static void run_try_huge(struct hak_super *head, unsigned unit, unsigned units, char *huge)
{
    if (huge == NULL) {
        return;
    }
    if (!hak_huge_pages_are_dear(huge)) {
        hak_collapse_one();
        return;
    }
    struct hak_shard *shard = hak_arena_shard_of(head);
    hak_lock_take(&shard->lock);
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part); i++) {
        hak_huge_pages_end_locked(shard, part.super, part.bits);
    }
    hak_lock_drop(&shard->lock);
}

// Free units of a run. Its user may have touched all of them.
static void run_free_locked(struct hak_shard *shard,
                            struct hak_super *head,
                            unsigned unit,
                            unsigned units) HAK_REQUIRES(&shard->lock)
{
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part); i++) {
        hak_super_note_touched_locked(part.super, part.bits);
        // If the run keeps units in a superslab, `span` stays as it is.
        if (part.super != head && (part.bits & 1) != 0) {
            hak_store_relaxed(&part.super->span, NULL);
        }
        hak_units_free_locked(shard, part.super, part.bits, true);
    }
}

static bool run_is_free_locked(const struct hak_shard *shard,
                               struct hak_super *head,
                               unsigned unit,
                               unsigned units) HAK_REQUIRES(&shard->lock)
{
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part); i++) {
        if (part.super == NULL || (part.super->free_units & part.bits) != part.bits) {
            return false;
        }
    }
    return true;
}

// Map the superslabs that a growing run lacks, if all units before them are free and the next mapping
// will lie there anyway.
static bool run_map_more_locked(struct hak_shard *shard,
                                struct hak_super *head,
                                unsigned unit,
                                unsigned units,
                                bool wants_huge) HAK_REQUIRES(&shard->lock)
{
    unsigned present = 0;
    struct part part;
    for (unsigned i = 0; run_part(shard, head, unit, units, i, &part) && part.super != NULL; i++) {
        if ((part.super->free_units & part.bits) != part.bits) {
            return false;
        }
        present += hak_count_bits(part.bits);
    }
    const char *missing = head->base + (unit + present) * HAK_UNIT_BYTES;
    return present < units && hak_map_slot(missing) == hak_superslabs_next_slot() &&
           hak_superslabs_grow_locked(shard, units - present, wants_huge) != UINT64_MAX;
}

static void super_name_run(struct hak_super *super, unsigned unit, unsigned units)
{
    for (unsigned i = unit; i < unit + units && i < HAK_SUPER_UNITS; i++) {
        super->first[i] = (uint8_t)unit;
    }
}

static struct hak_super *run_super(const struct hak_run *run)
{
    return hak_map_super(run->base);
}

static unsigned run_unit(const struct hak_run *run)
{
    return (unsigned)(run - run_super(run)->slabs);
}

static unsigned units_for(size_t bytes)
{
    return (unsigned)((bytes + HAK_UNIT_BYTES - 1) >> HAK_UNIT_LOG2);
}

// As run_use_locked, if the limit allows it; then others must not grow meanwhile. Unproven: the lock may not be needed.
static bool run_take_locked(struct hak_shard *shard,
                            struct hak_super *super,
                            unsigned unit,
                            unsigned units,
                            bool wants_huge,
                            struct taken *taken) HAK_REQUIRES(&shard->lock) HAK_UNPROVEN
{
    const bool is_alone = hak_arena_is_limited();
    if (is_alone) {
        hak_lock_take(&hak_arena.lock);
    }
    const bool may = hak_arena_has_room(units * HAK_UNIT_BYTES);
    if (may) {
        *taken = run_use_locked(shard, super, unit, units, wants_huge);
    }
    if (is_alone) {
        hak_lock_drop(&hak_arena.lock);
    }
    return may;
}

static struct hak_run *shard_take(struct hak_shard *shard,
                                  size_t bytes,
                                  unsigned align_units,
                                  enum hak_run_state state,
                                  bool wants_huge,
                                  bool may_grow)
{
    const unsigned units = units_for(bytes);
    struct hak_gap gap;
    struct taken taken;
    hak_lock_take(&shard->lock);
    if (!hak_arena_has_room(units * HAK_UNIT_BYTES) ||
        !hak_find_gap_locked(shard, units, align_units, wants_huge, may_grow, &gap) ||
        !run_has_room_locked(shard, hak_map_in_slot(gap.slot), gap.unit, units) ||
        !run_take_locked(shard, hak_map_in_slot(gap.slot), gap.unit, units, wants_huge, &taken)) {
        hak_lock_drop(&shard->lock);
        return NULL;
    }
    struct hak_super *super = hak_map_in_slot(gap.slot);
    struct hak_run *run = &super->slabs[gap.unit];
    run->units = (uint16_t)units;
    run->bytes = bytes;
    run->size_class = HAK_SMALL_CLASSES; // not a small class, unless the run becomes a slab
    run->base = super->base + gap.unit * HAK_UNIT_BYTES;
    hak_list_start(&run->link);
    super_name_run(super, gap.unit, units);
    super->made_at[gap.unit] = hak_load_relaxed(&hak_arena.clock);
    run->zeroed = taken.zeroed;
    run->state = (uint8_t)state;
    HAK_ARENA_COUNT(shard, slab_bytes, state == HAK_RUN_NONE ? units * HAK_UNIT_BYTES : 0);
    hak_lock_drop(&shard->lock);
    run_try_huge(super, gap.unit, units, taken.huge);
    return run;
}

struct hak_run *hak_runs_take(
    unsigned shard, size_t bytes, unsigned align_units, enum hak_run_state state, bool wants_huge)
{
    struct hak_run *run = NULL;
    // All threads try the shards in the same order: the first ones fill up, and superslabs of the others become free.
    for (unsigned i = 0; run == NULL && i <= hak_arena.shard_mask && hak_arena_is_short(); i++) {
        run = shard_take(&hak_arena.shards[i], bytes, align_units, state, wants_huge, false);
    }
    for (unsigned i = 0; run == NULL && i <= hak_arena.shard_mask; i++) {
        struct hak_shard *other = &hak_arena.shards[(shard + i) & hak_arena.shard_mask];
        run = shard_take(other, bytes, align_units, state, wants_huge, i == 0);
    }
    return run;
}

// The units of a slab that may be resident; they lie in one superslab. Blocks that were never handed out are untouched since
// the slab was made, and `untouched` tells what earlier users have touched.
static uint64_t slab_touch_locked(struct hak_super *super, const struct hak_run *slab)
{
    struct hak_super_place *place = hak_super_place(super);
    const unsigned unit = run_unit(slab);
    const uint64_t units = hak_bit_range(unit, slab->units);
    const size_t bytes =
        hak_load_relaxed(&slab->fresh) * (size_t)hak_classes[slab->size_class].bytes;
    const size_t touched = hak_align_up(bytes, hak_os_page_bytes()) / HAK_CHUNK_BYTES;
    uint64_t dirty = units & ~place->sparse_units;
    for (uint64_t left = units & ~dirty; left != 0; left &= left - 1) {
        const unsigned i = hak_lowest_bit(left);
        const size_t before = (size_t)(i - unit) * HAK_UNIT_CHUNKS;
        const size_t rest = touched > before ? touched - before : 0;
        const size_t untouched = rest < HAK_UNIT_CHUNKS ? HAK_UNIT_CHUNKS - rest : 0;
        if (untouched < place->untouched[i]) {
            place->untouched[i] = (uint8_t)untouched;
        }
        dirty |= place->untouched[i] < HAK_UNIT_CHUNKS ? left & -left : 0;
    }
    return dirty;
}

static void slab_free_locked(struct hak_shard *shard,
                             struct hak_super *super,
                             const struct hak_run *slab) HAK_REQUIRES(&shard->lock)
{
    const uint64_t dirty = slab_touch_locked(super, slab);
    const uint64_t clean = hak_bit_range(run_unit(slab), slab->units) & ~dirty;
    if (clean != 0) {
        hak_units_free_locked(shard, super, clean, false);
    }
    if (dirty != 0) {
        hak_units_free_locked(shard, super, dirty, true);
    }
    if (slab->zeroed) { // the pages read as zero, resident or not
        super->written_units &= ~hak_bit_range(run_unit(slab), slab->units);
    }
}

void hak_runs_give(struct hak_run *run)
{
    struct hak_super *super = run_super(run);
    struct hak_shard *shard = hak_arena_shard_of(super);
    hak_lock_take(&shard->lock);
    const bool is_slab = run->state == HAK_RUN_SLAB;
    const bool is_large = run->state == HAK_RUN_LARGE;
    HAK_ARENA_COUNT(shard, slab_bytes, (size_t)0 - (is_large ? 0 : run->units * HAK_UNIT_BYTES));
    run->state = HAK_RUN_NONE;
    if (is_slab) {
        hak_super_place(super)->holed_units |=
            run->purged_blocks != 0 ? hak_bit_range(run_unit(run), run->units) : 0;
        slab_free_locked(shard, super, run);
    } else {
        run_free_locked(shard, super, run_unit(run), run->units);
    }
    hak_lock_drop(&shard->lock);
}

// Add `more` units to a run; `end` is the unit behind its last. False if they are not available.
static bool run_grow_locked(struct hak_shard *shard,
                            struct hak_super *super,
                            unsigned end,
                            unsigned more,
                            bool wants_huge,
                            struct taken *taken) HAK_REQUIRES(&shard->lock)
{
    bool may = hak_arena_has_room(more * HAK_UNIT_BYTES);
    if (may && !run_is_free_locked(shard, super, end, more) &&
        !(run_map_more_locked(shard, super, end, more, wants_huge) &&
          run_is_free_locked(shard, super, end, more))) {
        return false;
    }
    may = may && run_has_room_locked(shard, super, end, more) &&
          run_take_locked(shard, super, end, more, wants_huge, taken);
    if (!may) {
        hak_refusal_note(HAK_REFUSED_TO_GROW, more * HAK_UNIT_BYTES);
    }
    return may;
}

bool hak_runs_resize(struct hak_run *run, size_t bytes)
{
    const unsigned units = units_for(bytes);
    struct hak_super *super = run_super(run);
    struct hak_shard *shard = hak_arena_shard_of(super);
    struct taken taken = {.zeroed = false, .huge = NULL};
    const unsigned before = run->units;
    const unsigned more = units > before ? units - before : 0;
    const bool wants_huge = more != 0 && hak_huge_pages_wanted(bytes, false);
    hak_lock_take(&shard->lock);
    const unsigned unit = run_unit(run);
    const bool done =
        more == 0 || run_grow_locked(shard, super, unit + before, more, wants_huge, &taken);
    if (done) {
        if (units < before) {
            run_free_locked(shard, super, unit + units, before - units);
        } else if (more > 0) {
            super_name_run(super, unit, units);
        }
        run->units = (uint16_t)units;
        run->bytes = bytes;
    }
    hak_lock_drop(&shard->lock);
    run_try_huge(super, unit + before, more, taken.huge);
    return done;
}
