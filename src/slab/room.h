// room.h -- what the process's control group has room for.
//
// Layer     slab
// Owns      hak_room.
// Threads   the holder of the arena's lock; of a shard's credit the holder of its lock.
// Fails     never; what cannot be read does not limit.
//
// The kernel refuses no memory beyond a control group's limit: it ends the process that touches it. So before
// the heap hands out memory that is not resident yet, it asks here (docs/decisions/0025).
#ifndef HAK_SLAB_ROOM_H
#define HAK_SLAB_ROOM_H

#include "base/bits.h"
#include "os/control_group.h"
#include "slab/arena.h"

// Nothing that a process hands out adds up to that.
#define HAK_ROOM_UNLIMITED (SIZE_MAX / 2)

struct hak_room {
    size_t credit_bytes; // may be handed out until the group is looked at again
    size_t lent_bytes;   // lent to shards, which may not have handed it out yet
    size_t limit_bytes;  // the group's, and what it used, when it was looked at last
    size_t used_bytes;
    struct hak_group_use
        read; // by the latest look at the group's files, the first of which is before the program's main
    size_t read_heap; // the heap at that time
    bool is_read;
};
HAK_INTERNAL extern struct hak_room hak_room;

// Read the group's files.
HAK_INTERNAL void hak_room_start_locked(void) HAK_REQUIRES(&hak_arena.lock);

// May `bytes` become resident? No when the control group has no room for them, with option limit_group.
HAK_INTERNAL bool hak_room_allows_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock);

// The same for a shard, which has a credit of its own. Takes the arena's lock when that is used up.
HAK_INTERNAL bool hak_room_lend(struct hak_shard *shard, size_t bytes) HAK_REQUIRES(&shard->lock);
HAK_INLINE bool hak_room_allows(struct hak_shard *shard, size_t bytes) HAK_REQUIRES(&shard->lock)
{
    if (HAK_UNLIKELY(bytes > shard->credit_bytes)) {
        return hak_room_lend(shard, bytes);
    }
    shard->credit_bytes -= bytes;
    return true;
}

#endif
