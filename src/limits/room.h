// room.h -- how much memory the process's control group has room for.
//
// Owns      hak_room.
// Threads   the holder of the arena's lock.
// Fails     never; a limit that cannot be read is none.
//
// The kernel does not refuse memory beyond a control group's limit: it kills the process that touches it. So
// before the heap hands out memory that is not resident yet, it asks here (docs/decisions/0025).
#pragma once

#include "os/control_group.h"
#include "slab/arena.h"

struct hak_room {
    size_t credit_bytes; // may be handed out before the group's use is read again
    size_t lent_bytes;   // lent to shards, which may not have handed it out yet
    size_t limit_bytes;  // the group's, and what it used, when they were last read
    size_t used_bytes;
    struct hak_group_use at_start; // before the program's main
    size_t ours_at_start;
};
HAK_INTERNAL extern struct hak_room hak_room;

// Note that the calling thread has given back everything that is free.
HAK_INTERNAL void hak_room_note_sweep(void);
