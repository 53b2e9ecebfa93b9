// units.h -- makes units of superslabs used, free and dirty, and keeps the sums of them.
//
// Threads   the holder of the lock of the superslab's shard.
#pragma once

#include "slab/arena.h"

// Take `bits` out of the free units. The huge pages `huge`, given by their units, become resident: what is free in them becomes
// dirty.
HAK_INTERNAL void hak_units_use_locked(struct hak_shard *shard,
                                       struct hak_super *super,
                                       uint64_t bits,
                                       uint64_t huge) HAK_REQUIRES(&shard->lock);

// Make units free; `dirty` if their pages may be resident.
HAK_INTERNAL void hak_units_free_locked(struct hak_shard *shard,
                                        struct hak_super *super,
                                        uint64_t bits,
                                        bool dirty) HAK_REQUIRES(&shard->lock);
