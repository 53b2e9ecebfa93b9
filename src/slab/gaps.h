// gaps.h -- where free units are, in order of address.
//
// Owns      for each shard of the arena a tree over the slots of the map: eight bytes for each superslab, and as much
//           above them, where the shard has superslabs. Of what lies below it a node knows the longest rows of free units,
//           so that the first that is long enough is found in as many steps as the tree is high, whatever the size of the
//           heap.
// Threads   the holder of the shard's lock.
//
// The first gap that fits, by address, is taken: what is used gathers in front, and what lies
// behind becomes free in long rows. (Wilson, Johnstone, Neely and Boles, "Dynamic storage
// allocation: a survey", 1995, found it as good as best fit in all programs they looked at.)
#pragma once

#include "base/compiler.h"

struct hak_gap {
    uint64_t slot; // of the superslab in which it begins
    unsigned unit; // where in it
};

struct hak_gaps_node;
enum { HAK_GAPS_BANDS = 4 };
struct hak_gaps {
    struct hak_gaps_node **bands[HAK_GAPS_BANDS]; // see gaps.c
    uint64_t low;                                 // superslabs lie in slots low … high - 1
    uint64_t high;
    unsigned top; // the height of the node above them all
    // Superslabs next to each other that have changed since the nodes above them were set right, which is done before
    // the next search: a long run changes many at once, and what is freed is often taken again. What changed of them
    // is `inside` and `start`, or the rest of the node.
    struct hak_gaps_changed {
        uint64_t first;
        uint64_t last;
        bool insides;
        bool rows;
    } changed;
};

// The tree knows nothing of alignments between a unit and a superslab. So this many rows that are long enough are tried; when none
// has an aligned place, a row is taken that is longer by the alignment.
enum { HAK_GAPS_LOOKS = 64 };

// Before the first note of a slot. False without memory.
HAK_INTERNAL bool hak_gaps_reserve(struct hak_gaps *gaps, uint64_t slot);

// The superslab in `slot` has these units free: a bit each. 0 also when it is no longer there. `joins`: its
// addresses are next to those of the superslabs in the slots beside it.
HAK_INTERNAL void hak_gaps_note(struct hak_gaps *gaps,
                                uint64_t slot,
                                uint64_t free_units,
                                bool joins);

// The next superslab, at or after `slot`, with `units` (1 to 64) free units in a row, `at_start` at its beginning; UINT64_MAX
// when there is none.
HAK_INTERNAL uint64_t hak_gaps_find(struct hak_gaps *gaps,
                                    uint64_t slot,
                                    unsigned units,
                                    bool at_start);
// A row of `units` that begins, at or after `slot`, at a multiple of `align_units` and goes on in the following
// superslabs, whose addresses are next to each other. False when there is none, or none that is long enough at any
// place after so many looks.
HAK_INTERNAL bool hak_gaps_find_across(struct hak_gaps *gaps,
                                       uint64_t slot,
                                       unsigned units,
                                       unsigned align_units,
                                       unsigned looks,
                                       struct hak_gap *gap);
// How long the row is that ends where `slot` begins. As many steps as it has superslabs: ask when none is long
// enough for what is wanted.
HAK_INTERNAL unsigned hak_gaps_before(const struct hak_gaps *gaps, uint64_t slot);
