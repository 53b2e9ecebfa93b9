// runs.h -- runs of units: what slabs and large blocks are made of.
//
// Owns      nothing; which units are free is in the superslabs.
// Threads   any. Functions that change something take the lock of the shard.
// Fails     NULL or false when the kernel refuses; what was free before is still free.
#pragma once

#include "slab/arena.h"

// Take a run for `bytes` (at most HAK_LARGE_RUN_MAX; a long one may continue in the following superslabs) from that shard or,
// failing that, from another one. It is aligned to `align_units` (a power of two, at most 64). Sets in the descriptor `bytes`,
// `state` (LARGE; or NONE if the caller makes a slab of it) and `zeroed`: whether the pages read as zero. `wants_huge`: untouched
// memory asks for huge pages (hak_huge_pages_wanted).
HAK_INTERNAL struct hak_run *hak_runs_take(
    unsigned shard, size_t bytes, unsigned align_units, enum hak_run_state state, bool wants_huge);
HAK_INTERNAL void hak_runs_give(struct hak_run *run);
// Resize a run in place to `bytes`. False if the units behind it are in use.
HAK_INTERNAL bool hak_runs_resize(struct hak_run *run, size_t bytes);

// The run that contains `p`, according to the map; NULL when `p` is not ours. `p` may point
// anywhere into the run. The descriptor is stable while a block of it is live.
HAK_INTERNAL struct hak_run *hak_run_of(const void *p);

// Does `p` point into the run?
HAK_INLINE bool hak_run_spans(const struct hak_run *run, const void *p)
{
    return (uintptr_t)p - (uintptr_t)run->base < run->units * HAK_UNIT_BYTES;
}

// For messages: the block size of the ended slab that contained `p`, or the size of the ended large
// block that began at `p`; 0 if unknown. Other threads may change the descriptor meanwhile.
HAK_INTERNAL size_t hak_run_ended_bytes(const void *p);
