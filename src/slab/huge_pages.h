// huge_pages.h -- which memory asks for huge pages: that of a large and dense heap, while they are not
// expensive. docs/decisions/0008-huge-pages.md.
//
// Threads   any. Functions that end in _locked: the holder of the lock of the superslab's shard. hak_huge_pages_are_dear: no lock.
#pragma once

#include "slab/arena.h"

// Should untouched memory that is taken now for a run of `bytes` ask for huge pages? Yes if the heap is large and dense: a sparse
// one would pay for pages that it never touches. `is_new`: a new block; not a block that grows, whose content shows how dense it
// is, and not one of calloc's, of which often little is written. Unless the last look is recent, looks at the heap again, and takes
// the arena's lock for a part of that. The caller holds no lock.
HAK_INTERNAL bool hak_huge_pages_wanted(size_t bytes, bool is_new);

// A run is about to be put into the units. For each huge page that is wholly free and untouched, decide anew: the heap
// may have been small when it was mapped, or huge pages may have become expensive since.
HAK_INTERNAL void hak_huge_pages_decide_locked(struct hak_shard *shard,
                                               struct hak_super *super,
                                               uint64_t units,
                                               bool wants_huge) HAK_REQUIRES(&shard->lock);
// The pages in which the units lie no longer ask to be huge: their untouched parts will get small pages.
HAK_INTERNAL void hak_huge_pages_end_locked(struct hak_shard *shard,
                                            struct hak_super *super,
                                            uint64_t units) HAK_REQUIRES(&shard->lock);

// The units, or pages of them, were purged, but not the whole huge page. It becomes small pages: else the kernel would fill the
// holes when it collapses the rest in the background (khugepaged, whose max_ptes_none allows 511 holes of 512 pages).
HAK_INTERNAL void hak_huge_pages_note_holes_locked(struct hak_shard *shard,
                                                   struct hak_super *super,
                                                   uint64_t units) HAK_REQUIRES(&shard->lock);
// The same for a slab some pages of which are about to be purged. False: not now, as the huge page is being collapsed, which would
// fill the holes. The caller holds the lock of the slab's owner. Takes the shard's lock.
HAK_INTERNAL HAK_MUST_USE bool hak_huge_pages_may_have_holes(const struct hak_run *slab);

// Touch the first page, which reads as zero, of memory that has just asked for huge pages and that no
// other thread knows yet. True if the kernel had no huge page at hand: then the rest should use small
// pages. The caller holds no lock.
HAK_INTERNAL bool hak_huge_pages_are_dear(char *page);
