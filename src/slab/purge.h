// purge.h -- dirty pages back to the system; their addresses stay ours.
//
// Owns      nothing.
// Threads   any. The system calls are made without a lock.
// Fails     never; what the kernel refuses stays dirty.
#pragma once

#include "slab/arena.h"

// How many ticks ago the last free of a superslab must be.
struct hak_purge_age {
    uint64_t whole; // for free units that are no part of a huge page in use
    uint64_t part;  // for those that are
};

// Give back dirty pages of that age, in each shard those that have waited longest first, until `limit` bytes are
// reached. Returns the bytes given back.
HAK_INTERNAL size_t hak_purge(struct hak_purge_age age, size_t limit);
// The same with an age for each group of superslabs (base/variants.h).
HAK_INTERNAL size_t hak_purge_groups(const struct hak_purge_age ages[HAK_VARIANTS], size_t limit);
// After fork, in the child: purges that were under way in the parent are not here.
HAK_INTERNAL void hak_purge_forked_locked(void) HAK_REQUIRES(&hak_arena.lock);
