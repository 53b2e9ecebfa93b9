// runs.h -- runs of units: what slabs and large blocks are made of.
//
// Owns      nothing; which units are free is in the superslabs.
// Threads   any; those that change something take the lock of the shard.
// Fails     NULL or false when the kernel refuses; what was free before is still free.
#pragma once

#include "slab/arena.h"

// A run for `bytes` (at most HAK_LARGE_RUN_MAX; a long one may go on in the superslabs that follow) from that shard or,
// when it cannot have one, from another, aligned to `align_units` (a power of two, at most 64). In the descriptor are `bytes`, `state` (LARGE, or
// NONE for who still has to make a slab of it), and in `zeroed` whether the pages are untouched. `wants_huge`: what nobody has
// touched asks for huge pages (hak_huge_pages_wanted).
HAK_INTERNAL struct hak_run *hak_runs_take(
    unsigned shard, size_t bytes, unsigned align_units, enum hak_run_state state, bool wants_huge);
HAK_INTERNAL void hak_runs_give(struct hak_run *run);
// Let a run have `bytes` where it lies. False when the units behind it are in use.
HAK_INTERNAL bool hak_runs_resize(struct hak_run *run, size_t bytes);

// The run that `p` lies in, as the map knows it; NULL when it is not ours. `p`
// may point anywhere into it. The descriptor is stable while a block of it is live.
HAK_INTERNAL struct hak_run *hak_run_of(const void *p);

// Does `p` point into it?
HAK_INLINE bool hak_run_spans(const struct hak_run *run, const void *p)
{
    return (uintptr_t)p - (uintptr_t)run->base < run->units * HAK_UNIT_BYTES;
}

// Bytes of the blocks of the slab that `p` lay in before it ended, or of the large block that began
// there, if that is known; else 0. For messages: it may be read while it changes.
HAK_INTERNAL size_t hak_run_ended_bytes(const void *p);

// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_runs_free_units_locked(struct hak_shard *shard,
                                             struct hak_super *super,
                                             uint64_t bits,
                                             bool dirty) HAK_REQUIRES(&shard->lock);
