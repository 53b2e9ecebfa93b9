// arena_locked.h -- what the files of the arena share; the caller holds its lock.
#ifndef HAK_SLAB_ARENA_LOCKED_H
#define HAK_SLAB_ARENA_LOCKED_H

#include "slab/arena.h"

#define HAK_ARENA_TOP_BUCKET 6 // log2 of HAK_SUPER_UNITS

// Put `super` into the list for its longest free run.
HAK_INTERNAL void hak_arena_relink_locked(struct hak_super *super);
// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty);

// Should memory that is mapped now ask for huge pages? Yes when the heap is large and dense: a
// sparse one would pay for pages that it never touches.
HAK_INTERNAL bool hak_arena_wants_huge_locked(bool for_one_block);

#endif
