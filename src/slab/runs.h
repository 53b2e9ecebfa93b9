// runs.h -- runs of units: what slabs and large blocks are made of.
//
// Layer     slab (may include: base, os, meta)
// Owns      nothing; which units are free is in the superslabs.
// Threads   any; each takes the lock of the shard.
// Fails     NULL or false when the kernel refuses; what was free before is still free.
#ifndef HAK_SLAB_RUNS_H
#define HAK_SLAB_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slab/arena.h"

// A run for `bytes` (at most HAK_LARGE_RUN_MAX; a long one may go on in the superslabs that follow) from that shard or,
// when it cannot have one, from another, aligned to `align_units` (a power of two, at most 64). In the descriptor are `bytes`, `state` (LARGE, or
// NONE for who still has to make a slab of it), and in `zeroed` whether the pages are untouched.
HAK_INTERNAL struct hak_slab *hak_runs_take(unsigned shard,
                                            size_t bytes,
                                            unsigned align_units,
                                            enum hak_slab_state state);
HAK_INTERNAL void hak_runs_give(struct hak_slab *run);
// Let a run have `bytes` where it lies. False when the units behind it are in use.
HAK_INTERNAL bool hak_runs_resize(struct hak_slab *run, size_t bytes);

// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_runs_free_units_locked(struct hak_shard *shard,
                                             struct hak_super *super,
                                             uint64_t bits,
                                             bool dirty) HAK_REQUIRES(&shard->lock);

#endif
