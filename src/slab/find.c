// find.c -- see find.h.
#include "slab/find.h"

#include <limits.h>

#include "base/bits.h"
#include "meta/map.h"
#include "slab/superslabs.h"

// A bit for each unit at a multiple of `align_units`.
static uint64_t aligned_bits(unsigned align_units)
{
    uint64_t bits = 0;
    for (unsigned unit = 0; unit < HAK_SUPER_UNITS; unit += align_units) {
        bits |= UINT64_C(1) << unit;
    }
    return bits;
}

// The first unit in `super` at which a run fits; dirty units are preferred to untouched ones. 64: none.
static unsigned super_find(const struct hak_super *super, unsigned units, uint64_t aligned)
{
    uint64_t starts = hak_bit_rows(super->dirty_units, units) & aligned;
    if (starts == 0) {
        starts = hak_bit_rows(super->free_units, units) & aligned;
    }
    return starts != 0 ? hak_lowest_bit(starts) : HAK_SUPER_UNITS;
}

static bool shard_find_inside_locked(struct hak_shard *shard,
                                     uint64_t slot,
                                     unsigned units,
                                     unsigned align_units,
                                     unsigned looks,
                                     struct hak_gap *gap) HAK_REQUIRES(&shard->lock)
{
    const bool at_start = align_units == HAK_SUPER_UNITS;
    const uint64_t aligned = align_units == 1 ? ~UINT64_C(0) : aligned_bits(align_units);
    unsigned row = units;
    do {
        slot = hak_gaps_find(&shard->gaps, slot, row, at_start);
        if (slot == UINT64_MAX) {
            return false;
        }
        gap->slot = slot;
        gap->unit = super_find(hak_map_in_slot(slot), units, aligned);
        slot++; // the row is long enough, but may be misaligned
        if (--looks == 0) {
            row = units + align_units - 1;
            row = row < HAK_SUPER_UNITS ? row : HAK_SUPER_UNITS;
        }
    } while (gap->unit == HAK_SUPER_UNITS);
    return true;
}

// Runs of up to this many units lie within one superslab: in a run that crosses superslabs, the
// lookup of an address takes longer.
#define INSIDE_MAX 8

// Find a gap for a run in the shard's superslabs from `slot` on. `looks`: see gaps.h.
static bool shard_look_locked(struct hak_shard *shard,
                              uint64_t slot,
                              unsigned units,
                              unsigned align_units,
                              unsigned looks,
                              struct hak_gap *gap) HAK_REQUIRES(&shard->lock)
{
    return (units <= HAK_SUPER_UNITS &&
            shard_find_inside_locked(shard, slot, units, align_units, looks, gap)) ||
           (units > INSIDE_MAX &&
            hak_gaps_find_across(&shard->gaps, slot, units, align_units, looks, gap));
}

// Map superslabs for a run, and find a gap in them.
static bool shard_find_new_locked(struct hak_shard *shard,
                                  unsigned units,
                                  unsigned align_units,
                                  bool wants_huge,
                                  struct hak_gap *gap) HAK_REQUIRES(&shard->lock)
{
    // Free units just before the place of the next mapping become a part of the gap, if the mapping
    // really comes there and the alignment allows it.
    const unsigned before =
        units > INSIDE_MAX ? hak_gaps_before(&shard->gaps, hak_superslabs_next_slot()) : 0;
    const unsigned missing = before < units ? units - before : units;
    uint64_t slot = hak_superslabs_grow_locked(shard, missing, wants_huge);
    if (slot != UINT64_MAX) {
        const uint64_t first = slot - (before + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
        if (shard_look_locked(
                shard, first < slot ? first : slot, units, align_units, UINT_MAX, gap)) {
            return true;
        }
        slot = hak_superslabs_grow_locked(shard, units, wants_huge);
    }
    // Out of memory: look at every row of free units.
    return shard_look_locked(
        shard, slot != UINT64_MAX ? slot : 0, units, align_units, UINT_MAX, gap);
}

bool hak_find_gap_locked(struct hak_shard *shard,
                         unsigned units,
                         unsigned align_units,
                         bool wants_huge,
                         bool may_grow,
                         struct hak_gap *gap) HAK_REQUIRES(&shard->lock)
{
    if (!may_grow) {
        return shard_look_locked(shard, 0, units, align_units, UINT_MAX, gap);
    }
    if (shard_look_locked(shard, 0, units, align_units, HAK_GAPS_LOOKS, gap)) {
        return true;
    }
    if (units <= HAK_SUPER_UNITS && hak_arena.shard_mask != 0 &&
        hak_superslabs_adopt_locked(shard) &&
        shard_look_locked(shard, 0, units, align_units, HAK_GAPS_LOOKS, gap)) {
        return true;
    }
    return shard_find_new_locked(shard, units, align_units, wants_huge, gap);
}
