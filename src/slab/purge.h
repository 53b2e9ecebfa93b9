// purge.h -- gives dirty pages back to the system; their addresses stay ours.
//
// Owns      nothing.
// Threads   any. The system calls are made without a lock.
// Fails     never; what the kernel refuses stays dirty.
#pragma once

#include "slab/arena.h"

// The least number of ticks since the last free in a superslab.
struct hak_purge_age {
    uint64_t whole; // for free units that are not part of a huge page in use
    uint64_t part;  // for those that are
};

// Purge dirty pages of that age until `limit` bytes are reached; in each shard those first that have waited
// longest. Returns the bytes purged.
HAK_INTERNAL size_t hak_purge(struct hak_purge_age age, size_t limit);
// The same with an age for each group of superslabs (base/variants.h).
HAK_INTERNAL size_t hak_purge_groups(const struct hak_purge_age ages[HAK_VARIANTS], size_t limit);
// After fork, in the child: the parent's threads that were purging do not exist here; their units become free again.
HAK_INTERNAL void hak_purge_forked_locked(void) HAK_REQUIRES(&hak_arena.lock);
