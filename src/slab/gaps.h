// gaps.h -- where free units are, in order of address.
//
// Layer     slab (may include: base, os, meta)
// Owns      three bytes for each slot of the map: what a look for a gap needs of a superslab, so
//           that looking through a heap of a gigabyte reads less than a page.
// Threads   the holder of the arena's lock.
//
// The first gap that fits, by address, is taken: what is used gathers in front, and what lies
// behind becomes free in long rows. (Wilson, Johnstone, Neely and Boles, "Dynamic storage
// allocation: a survey", 1995, found it as good as best fit in all programs they looked at.)
#ifndef HAK_SLAB_GAPS_H
#define HAK_SLAB_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct hak_gap {
    uint64_t slot; // of the superslab in which it begins
    unsigned unit; // where in it
};

// Once the map is there. False without memory.
HAK_INTERNAL bool hak_gaps_start(void);

// The superslab in `slot` has these units free: a bit each. 0 also when it is no longer there.
HAK_INTERNAL void hak_gaps_note(uint64_t slot, uint64_t free_units);

// The next superslab, at or after `slot`, with `units` (1 to 64) free units in a row; UINT64_MAX when
// there is none.
HAK_INTERNAL uint64_t hak_gaps_find_inside(uint64_t slot, unsigned units);
// The first superslab that can have such a row: where to begin with the above.
HAK_INTERNAL uint64_t hak_gaps_begin(unsigned units);
// A row of `units` that begins at a multiple of `align_units` and goes on in the following
// superslabs, whose addresses are next to each other. False when there is none.
HAK_INTERNAL bool hak_gaps_find_across(unsigned units, unsigned align_units, struct hak_gap *gap);
// How long the row is that ends where `slot` begins.
HAK_INTERNAL unsigned hak_gaps_before(uint64_t slot);

#endif
