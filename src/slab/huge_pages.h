// huge_pages.h -- which memory asks for huge pages: that of a large and dense heap, while they are not
// dear. docs/decisions/0008-huge-pages.md.
//
// Owns      what the latest dear one has cost.
// Threads   any; what ends in _locked under the lock of the superslab's shard, the touch of memory without one.
#pragma once

#include "slab/arena.h"

// Should what is taken now for a run of `bytes`, and was never touched, ask for huge pages? Yes when the heap is large and dense: a
// sparse one would pay for pages that it never touches. `is_new`: for a new block, not one that grows (whose content shows what it
// is), nor one of zeros, of which often little is written. If it is some time ago, it looks whether the heap is dense, and takes the
// arena's lock, but not while it looks. Without a lock.
HAK_INTERNAL bool hak_huge_pages_wanted(size_t bytes, bool is_new);

// A run is about to be put into the units. A huge page that is wholly free and untouched decides anew: it was mapped when
// the heap was small, or huge pages have become dear since.
HAK_INTERNAL void hak_huge_pages_decide_locked(struct hak_shard *shard,
                                               struct hak_super *super,
                                               uint64_t units,
                                               bool wants_huge) HAK_REQUIRES(&shard->lock);
// The pages that the units lie in ask to be huge no more: what was not touched yet will be small ones.
HAK_INTERNAL void hak_huge_pages_end_locked(struct hak_shard *shard,
                                            struct hak_super *super,
                                            uint64_t units) HAK_REQUIRES(&shard->lock);

// The units, or pages of them, were given back, and not all of the huge page: it is none any more, or the kernel would fill the holes
// when it collapses what is left in the background (khugepaged, whose max_ptes_none allows 511 holes of 512 pages).
HAK_INTERNAL void hak_huge_pages_note_holes_locked(struct hak_shard *shard,
                                                   struct hak_super *super,
                                                   uint64_t units) HAK_REQUIRES(&shard->lock);
// The same of a slab, whose owner's lock the caller holds. Takes the shard's lock.
HAK_INTERNAL void hak_huge_pages_note_holes(const struct hak_run *slab);

// Touch a page that reads as zero, the first one of memory that has just asked for huge pages, and that
// nobody else knows yet. True when the kernel has not had one at hand, and the rest is better taken in
// small pages. Takes the lock.
HAK_INTERNAL bool hak_huge_pages_are_dear(char *page);
