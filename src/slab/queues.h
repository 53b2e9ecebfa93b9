// queues.h -- which superslab is next to be purged, to be unmapped, or to get a run. Every function that changes
// a superslab's units reports it here, so that no search visits all superslabs.
//
// Owns      the lists of each shard.
// Threads   the holder of the shard's lock.
#pragma once

#include "slab/arena.h"

// The free or dirty units of `super` have changed: update the queues and the gaps.
HAK_INTERNAL void hak_queues_note_units_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock);
// Some of its units become dirty now. Call hak_queues_note_units_locked afterwards.
HAK_INTERNAL void hak_queues_note_dirty_locked(struct hak_super *super);
// Initialise a new descriptor, which is in no queue.
HAK_INTERNAL void hak_queues_add_locked(struct hak_super *super);
