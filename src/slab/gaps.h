// gaps.h -- where free units are, in order of address.
//
// Owns      for each shard of the arena a tree over the slots of the map. Where the shard has superslabs, the tree takes eight
//           bytes per superslab, and as much again for the nodes above. A node knows the longest rows of free units below it.
//           So a search for the first row that is long enough takes as many steps as the tree is high, whatever the size of
//           the heap.
// Threads   the holder of the shard's lock.
//
// A run gets the first gap by address that fits: memory in use gathers at low addresses, and high
// addresses become free in long rows. (Wilson, Johnstone, Neely and Boles, "Dynamic storage allocation:
// a survey", 1995, found first fit by address as good as best fit in all programs they looked at.)
#pragma once

#include "base/compiler.h"

struct hak_gap {
    uint64_t slot; // of the superslab in which it begins
    unsigned unit; // its place in the superslab
};

struct hak_gaps_node;
enum { HAK_GAPS_BANDS = 4 };
struct hak_gaps {
    struct hak_gaps_node **bands[HAK_GAPS_BANDS]; // see gaps.c
    uint64_t low;                                 // superslabs lie in slots low … high - 1
    uint64_t high;
    unsigned top; // height of the root
    // A range of superslabs that have changed since the nodes above them were last recomputed. That is done before
    // the next search: a long run changes many superslabs at once, and freed units are often taken again. Changed are
    // the fields `inside` and `start` of the leaves (insides), or the others (rows).
    struct hak_gaps_changed {
        uint64_t first;
        uint64_t last;
        bool insides;
        bool rows;
    } changed;
};

// The tree does not know which rows are aligned. So a search tries this many rows that are long enough; if none has an aligned
// place, it looks for a row that is longer by the alignment.
enum { HAK_GAPS_LOOKS = 64 };

// Called before the first hak_gaps_note of a slot. False without memory.
HAK_INTERNAL bool hak_gaps_reserve(struct hak_gaps *gaps, uint64_t slot);

// Note which units of the superslab in `slot` are free, a bit for each; 0 if the superslab is gone.
// `joins`: its addresses adjoin those of the superslabs in the neighbouring slots.
HAK_INTERNAL void hak_gaps_note(struct hak_gaps *gaps,
                                uint64_t slot,
                                uint64_t free_units,
                                bool joins);

// The next superslab, at or after `slot`, with `units` (1 to 64) free units in a row; with `at_start`, at its beginning.
// UINT64_MAX if there is none.
HAK_INTERNAL uint64_t hak_gaps_find(struct hak_gaps *gaps,
                                    uint64_t slot,
                                    unsigned units,
                                    bool at_start);
// Find a row of `units` that begins, at or after `slot`, at a multiple of `align_units` and continues in the
// following superslabs, whose addresses adjoin. False if there is none, or, after `looks` rows without an aligned
// place, none that is longer by the alignment.
HAK_INTERNAL bool hak_gaps_find_across(struct hak_gaps *gaps,
                                       uint64_t slot,
                                       unsigned units,
                                       unsigned align_units,
                                       unsigned looks,
                                       struct hak_gap *gap);
// The length of the row that ends where `slot` begins. Takes as many steps as the row has superslabs, so call
// it only when no row is long enough.
HAK_INTERNAL unsigned hak_gaps_before(const struct hak_gaps *gaps, uint64_t slot);
