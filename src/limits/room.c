// room.c -- see room.h and docs/decisions/0025.
#include "limits/room.h"

#include "base/bits.h"
#include "base/options.h"
#include "meta/pool.h"
#include "os/control_group.h"
#include "os/refusal.h"
#include "slab/hooks.h"

enum { OFF = 1, WATCH = 2 }; // option limit_group

enum {
    KEPT_PARTS =
        32, // of the limit: for what was handed out and is not touched yet, stacks, and the kernel
    BLOCK_PARTS = 8, // of the limit: more of one block is not taken for memory that will be touched
    CREDIT_PARTS = 4, // of the room: others in the group grow, too
    LENT_PARTS = 16,  // of the limit, to all shards together
};
// Larger than all that a process can hand out.
#define UNLIMITED    (SIZE_MAX / 2)
#define KEPT_MOST    HAK_MIB(64)
#define CREDIT_LEAST HAK_KIB(256) // a look takes some 20 us

// Nothing is looked at before the heap has a superslab.
struct hak_room hak_room = {.credit_bytes = HAK_SUPER_BYTES};

// Of the heap, and what we keep beside it.
static size_t ours(void)
{
    return hak_arena_heap_bytes() + hak_load_relaxed(&hak_pool.mapped_bytes);
}

static void read_group_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    hak_room.read = hak_control_group_read_use();
    hak_room.read_heap = ours();
    hak_room.is_read = true;
}

void hak_hook_share_locked(const struct hak_share *share) HAK_REQUIRES(&hak_arena.lock)
{
    if (share->memory_used == 0) {
        hak_room.credit_bytes = UNLIMITED; // no group limits it
    } else {
        read_group_locked();
    }
}

// The group as it was when its files were read, with what the heap has grown by since. That may be too much: of the heap
// some is not resident.
static struct hak_group_use use_by_heap_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    if (!hak_room.is_read) {
        read_group_locked();
    }
    struct hak_group_use use = hak_room.read;
    const size_t heap = ours();
    if (use.limit_bytes != SIZE_MAX && heap > hak_room.read_heap) {
        use.used_bytes += hak_least(heap - hak_room.read_heap, use.limit_bytes - use.used_bytes);
    }
    return use;
}

// What would be used with `bytes` more, and what has to stay free.
static size_t taken_locked(struct hak_group_use use, size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t part = use.limit_bytes / BLOCK_PARTS;
    const size_t needed = hak_least(bytes, part > HAK_SUPER_BYTES ? part : HAK_SUPER_BYTES);
    return use.used_bytes + hak_least(use.limit_bytes / KEPT_PARTS, KEPT_MOST) + needed +
           hak_room.lent_bytes;
}

// Files are read when more than half of the limit is used by the count of the heap: the program may be in a sandbox that lets
// it read none; but that count knows nothing of others in the group, and of the kernel's own memory for us, which counts, too.
static bool room_look_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t policy = hak_load_relaxed(&hak_options.limit_group);
    if (policy == OFF || hak_load_relaxed(&hak_options.deterministic) != 0) {
        return true;
    }
    struct hak_group_use use = use_by_heap_locked();
    if (use.limit_bytes != SIZE_MAX &&
        (policy == WATCH || taken_locked(use, bytes) > use.limit_bytes / 2)) {
        read_group_locked();
        use = hak_room.read;
    }
    if (use.limit_bytes == SIZE_MAX) {
        hak_room.credit_bytes = UNLIMITED;
        return true;
    }
    hak_room.limit_bytes = use.limit_bytes;
    hak_room.used_bytes = use.used_bytes;
    const size_t taken = taken_locked(use, bytes);
    if (taken > use.limit_bytes) {
        hak_room.credit_bytes = 0;
        hak_refusal_note(HAK_REFUSED_BY_GROUP, bytes);
        return false;
    }
    const size_t rest = use.limit_bytes - taken;
    const size_t credit = rest / CREDIT_PARTS;
    hak_room.credit_bytes = credit > CREDIT_LEAST ? credit : hak_least(rest, CREDIT_LEAST);
    return true;
}

bool hak_hook_may_use_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    if (HAK_UNLIKELY(bytes > hak_room.credit_bytes)) {
        return room_look_locked(bytes);
    }
    // Requests that the kernel then refuses, again and again, would use up the credit of a group without limit.
    if (hak_room.credit_bytes < UNLIMITED / 2) {
        hak_room.credit_bytes -= bytes;
    }
    return true;
}

// What a shard may have beside what it asks for. Without a limit it never asks again.
static size_t loan_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t left = hak_room.credit_bytes;
    if (left >= UNLIMITED / 2) {
        return UNLIMITED / (4 * HAK_SHARDS_MAX);
    }
    const size_t part = hak_room.limit_bytes / LENT_PARTS / (hak_arena.shard_mask + 1);
    return hak_least(left / 2, part > HAK_UNIT_BYTES ? part : HAK_UNIT_BYTES);
}

bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes) HAK_REQUIRES(&shard->lock)
{
    hak_lock_take(&hak_arena.lock);
    hak_room.lent_bytes -= shard->lent_bytes;
    shard->lent_bytes = 0;
    const bool may = hak_hook_may_use_locked(bytes);
    if (may) {
        shard->lent_bytes = loan_locked();
        hak_room.credit_bytes -= shard->lent_bytes;
        hak_room.lent_bytes += shard->lent_bytes;
    }
    shard->credit_bytes = shard->lent_bytes;
    hak_lock_drop(&hak_arena.lock);
    return may;
}
