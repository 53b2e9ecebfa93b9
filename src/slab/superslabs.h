// superslabs.h -- maps and unmaps the superslabs of a shard, and takes them over from other shards.
//
// Owns      the descriptors of superslabs, which are reused.
// Threads   any. Functions that end in _locked: the holder of the locks that they name.
// Fails     without memory; what was free before is still free.
#pragma once

#include "slab/arena.h"

// Map superslabs for a run of `units`, with huge pages or without. Returns the first slot; UINT64_MAX if not all could be had.
HAK_INTERNAL uint64_t hak_superslabs_grow_locked(struct hak_shard *shard,
                                                 unsigned units,
                                                 bool wants_huge) HAK_REQUIRES(&shard->lock);
// The slot of the next mapping, unless another thread maps first.
HAK_INTERNAL uint64_t hak_superslabs_next_slot(void);
// Take over a wholly free superslab of another shard, before a new one is mapped. False if there is none.
HAK_INTERNAL bool hak_superslabs_adopt_locked(struct hak_shard *shard) HAK_REQUIRES(&shard->lock);

// Unmap superslabs that are wholly free. Returns the bytes unmapped.
HAK_INTERNAL size_t hak_superslabs_trim(void);
