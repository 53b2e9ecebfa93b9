// superslabs.h -- where a shard's superslabs come from, and where they go: mapped, taken over from another shard,
// unmapped.
//
// Owns      the descriptors of superslabs, which are used again.
// Threads   any; what ends in _locked under the locks that it names.
// Fails     without memory; what was free before is still free.
#pragma once

#include "slab/arena.h"

// Map the superslabs for a run of `units`, with huge pages or without. The slot of the first; UINT64_MAX when not all could be had.
HAK_INTERNAL uint64_t hak_superslabs_grow_locked(struct hak_shard *shard,
                                                 unsigned units,
                                                 bool wants_huge) HAK_REQUIRES(&shard->lock);
// Where the next one is mapped, if nobody else maps one before.
HAK_INTERNAL uint64_t hak_superslabs_next_slot(void);
// One that another shard has for nothing is used before one is mapped. False when there is none.
HAK_INTERNAL bool hak_superslabs_adopt_locked(struct hak_shard *shard) HAK_REQUIRES(&shard->lock);

// Unmap superslabs that are wholly free. Returns the bytes unmapped.
HAK_INTERNAL size_t hak_superslabs_trim(void);
