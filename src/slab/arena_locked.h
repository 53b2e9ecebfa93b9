// arena_locked.h -- what the files of the arena share; the caller holds its lock.
#ifndef HAK_SLAB_ARENA_LOCKED_H
#define HAK_SLAB_ARENA_LOCKED_H

#include "slab/arena.h"

// The free or dirty units of `super` have changed: it is found by these from now on.
HAK_INTERNAL void hak_arena_note_units_locked(struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// Units of it become dirty now; to be followed by the above.
HAK_INTERNAL void hak_arena_note_dirty_locked(struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// A descriptor is in no queue.
HAK_INTERNAL void hak_queues_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_queues_start(void);
// The dirty units that may go first: all but parts of huge pages in use.
HAK_INTERNAL uint64_t hak_super_whole_units(const struct hak_super *super);

// A run ends with a unit, its user's bytes with a page. What earlier users of the last unit touched
// stays resident for nothing, up to as much again as a block of 36 KiB: noted here, given back
// when it has lasted (purge.c). `is_used`: its present user may have touched it.
HAK_INTERNAL void hak_run_note_tail_locked(const struct hak_slab *run, bool is_used)
    HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_run_forget_tail_locked(const struct hak_slab *run)
    HAK_REQUIRES(&hak_arena.lock);
// The tails of `super` have waited for nothing so far, or are gone.
HAK_INTERNAL void hak_super_note_tails_locked(struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);
// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_arena_free_units_locked(struct hak_super *super, uint64_t bits, bool dirty)
    HAK_REQUIRES(&hak_arena.lock);

// Which of two groups it belongs to while an option is on trial (base/arms.h): by turns.
HAK_INLINE unsigned hak_super_group(const struct hak_super *super)
{
    return (unsigned)((uintptr_t)super->base >> HAK_SUPER_LOG2) & 1;
}

// Mappings outside our window (outside.c). Before one is added there has to be room for it: false without memory.
HAK_INTERNAL bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_remove_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);

HAK_INLINE void hak_super_count_dirty(const struct hak_super *super, size_t bytes)
{
    hak_count(&hak_arena.dirty_bytes, bytes);
    hak_count(&hak_arena.waiting_bytes[hak_super_group(super)], bytes);
}

// Something was mapped for blocks.
HAK_INTERNAL void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock);

// From the end of its user's bytes to the end of a run.
HAK_INLINE size_t hak_run_tail_bytes(const struct hak_slab *run)
{
    return run->units * HAK_UNIT_BYTES - run->bytes;
}

#endif
