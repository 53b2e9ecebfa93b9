// arena_locked.h -- what the files of the arena share; the caller holds its lock.
#ifndef HAK_SLAB_ARENA_LOCKED_H
#define HAK_SLAB_ARENA_LOCKED_H

#include "slab/arena.h"

// The free units of `super` have changed.
HAK_INTERNAL void hak_arena_note_gaps_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty)
    HAK_REQUIRES(&hak_arena.lock);

// Which of two groups it belongs to while an option is on trial (base/arms.h): by turns.
HAK_INLINE unsigned hak_super_group(const struct hak_super *super)
{
    return (unsigned)((uintptr_t)super->base >> HAK_SUPER_LOG2) & 1;
}

// Something was mapped for blocks.
HAK_INTERNAL void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock);

// From the end of its user's bytes to the end of a run.
HAK_INLINE size_t hak_run_tail_bytes(const struct hak_slab *run)
{
    return run->units * HAK_UNIT_BYTES - run->bytes;
}

#endif
