// queues.h -- which superslab is next: to be given back from, to be unmapped, to put a run into. Everything that
// changes one says so here, so that nobody has to look through all of them.
//
// Owns      the lists of each shard.
// Threads   the holder of the shard's lock.
#pragma once

#include "slab/arena.h"

// The free or dirty units of `super` have changed: it is found by these from now on.
HAK_INTERNAL void hak_queues_note_units_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock);
// Units of it become dirty now; to be followed by the above.
HAK_INTERNAL void hak_queues_note_dirty_locked(struct hak_super *super);
// A descriptor is in no queue.
HAK_INTERNAL void hak_queues_add_locked(struct hak_super *super);
