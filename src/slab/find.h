// find.h -- where a run is put: into the first gap by address (gaps.h); and what a shard does when it has none.
//
// Owns      nothing.
// Threads   the holder of the shard's lock.
#pragma once

#include "slab/arena.h"

// Find a gap for a run: in the shard's superslabs or, with `may_grow`, in new ones, which use huge pages if `wants_huge`.
HAK_INTERNAL bool hak_find_gap_locked(struct hak_shard *shard,
                                      unsigned units,
                                      unsigned align_units,
                                      bool wants_huge,
                                      bool may_grow,
                                      struct hak_gap *gap) HAK_REQUIRES(&shard->lock);
