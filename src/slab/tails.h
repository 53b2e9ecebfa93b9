// tails.h -- what is resident between the end of a large block and the end of its run.
//
// Layer     slab (may include: base, os, meta)
// Owns      nothing; the superslab in which a run ends has a bit for it (tail_units).
// Threads   the holder of the shard's lock.
#ifndef HAK_SLAB_TAILS_H
#define HAK_SLAB_TAILS_H

#include <stdbool.h>

#include "slab/arena.h"

// A run ends with a unit, its user's bytes with a page. What earlier users of the last unit touched
// stays resident for nothing, up to as much again as a block of 36 KiB: noted here, given back
// when it has lasted (purge.c). `is_used`: its present user may have touched it.
HAK_INTERNAL void hak_tails_note_locked(struct hak_shard *shard,
                                        const struct hak_slab *run,
                                        bool is_used) HAK_REQUIRES(&shard->lock);
HAK_INTERNAL void hak_tails_forget_locked(struct hak_shard *shard, const struct hak_slab *run)
    HAK_REQUIRES(&shard->lock);

// From the end of its user's bytes to the end of a run.
HAK_INLINE size_t hak_tails_bytes(const struct hak_slab *run)
{
    return run->units * HAK_UNIT_BYTES - run->bytes;
}

#endif
