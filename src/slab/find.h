// find.h -- where a run is put: in the first gap by address (gaps.h), and what is done when a shard has none.
//
// Owns      nothing.
// Threads   the holder of the shard's lock.
#pragma once

#include "slab/arena.h"

// A gap for a run, in what there is or, if the shard may grow, in what is added for it, with huge pages or without.
HAK_INTERNAL bool hak_find_gap_locked(struct hak_shard *shard,
                                      unsigned units,
                                      unsigned align_units,
                                      bool wants_huge,
                                      bool may_grow,
                                      struct hak_gap *gap) HAK_REQUIRES(&shard->lock);
