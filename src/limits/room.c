// room.c -- see room.h and docs/decisions/0025.
#include "limits/room.h"

#include "base/bits.h"
#include "base/options.h"
#include "meta/pool.h"
#include "os/control_group.h"
#include "os/refusal.h"
#include "slab/hooks.h"

// Parts of the limit, except the second.
enum {
    KEPT_PARTS = 32,
    CREDIT_PARTS = 4, // of the room: others in the group grow, too
    BLOCK_PARTS = 8,  // at most so much of one block counts, as the rest may never be touched
    LENT_PARTS = 16,  // to all shards together
};
// Larger than all that a process can hand out.
#define UNLIMITED    (SIZE_MAX / 2)
#define KEPT_MOST    HAK_MIB(64)
#define CREDIT_LEAST HAK_KIB(256) // reading the group's use takes some 20 us
// While nothing limits a shard, it hands out so much before it reads the option again.
#define UNWATCHED HAK_MIB(16)

enum { AUTO, OFF, REFUSE }; // option limit_group

// Nothing is read before the heap has a superslab.
struct hak_room hak_room = {.credit_bytes = HAK_SUPER_BYTES, .at_start.limit_bytes = SIZE_MAX};

static uint64_t policy(void)
{
    return hak_load_relaxed(&hak_options.deterministic) != 0
               ? OFF
               : hak_load_relaxed(&hak_options.limit_group);
}

// The bytes of the heap and of the pool beside it.
static size_t ours(void)
{
    return hak_arena_heap_bytes() + hak_load_relaxed(&hak_pool.mapped_bytes);
}

void hak_hook_share_locked(const struct hak_share *share) HAK_REQUIRES(&hak_arena.lock)
{
    if (share->memory_used == 0) {
        hak_room.credit_bytes = UNLIMITED; // no group limits it
    } else {
        hak_room.at_start = hak_control_group_read_use();
        hak_room.ours_at_start = ours();
        hak_room.credit_bytes = 0;
    }
}

// The group's use before main, plus the growth of the heap since. That may be too much, as part of the heap is not
// resident; or too little, as the growth of others in the group is not known.
static struct hak_group_use use_by_heap_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_group_use use = hak_room.at_start;
    const size_t heap = ours();
    use.used_bytes += heap > hak_room.ours_at_start ? heap - hak_room.ours_at_start : 0;
    return use;
}

// The part of the limit that is kept free: for memory that was handed out but not touched yet, for stacks, and for the kernel.
// Our count misses what the program maps itself, too.
static size_t kept(size_t limit, bool is_counted)
{
    return is_counted ? limit / HAK_NEAR_PARTS : hak_least(limit / KEPT_PARTS, KEPT_MOST);
}

// The use with `bytes` more, plus what has to stay free.
static size_t taken_locked(struct hak_group_use use, size_t bytes, bool is_counted)
    HAK_REQUIRES(&hak_arena.lock)
{
    const size_t part = use.limit_bytes / BLOCK_PARTS;
    const size_t needed = hak_least(bytes, part > HAK_SUPER_BYTES ? part : HAK_SUPER_BYTES);
    return use.used_bytes + kept(use.limit_bytes, is_counted) + needed + hak_room.lent_bytes;
}

// Our count alone refuses no request: after a first no the thread gives back everything that is free, and asks again. Then so many
// looks grant a 32nd part of the limit together; no request asks as often.
enum { LOOKS_OF_A_SWEEP = 8 };
static HAK_TLS unsigned looks_left;

void hak_room_note_sweep(void)
{
    looks_left = LOOKS_OF_A_SWEEP;
}

static size_t credit_by_count(size_t limit)
{
    if (looks_left == 0) {
        return 0;
    }
    looks_left--;
    return limit / KEPT_PARTS / LOOKS_OF_A_SWEEP;
}

// Files are read only if the option asks for that: a program that has put itself into a sandbox may be killed for opening one.
static bool room_look_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    const uint64_t chosen = policy();
    if (chosen == OFF) {
        return true;
    }
    const bool is_counted = chosen == AUTO;
    const struct hak_group_use use =
        is_counted ? use_by_heap_locked() : hak_control_group_read_use();
    if (use.limit_bytes == SIZE_MAX) {
        hak_room.credit_bytes = UNLIMITED;
        return true;
    }
    hak_room.limit_bytes = use.limit_bytes;
    hak_room.used_bytes = use.used_bytes;
    const size_t taken = taken_locked(use, bytes, is_counted);
    if (taken > use.limit_bytes) {
        hak_room.credit_bytes = is_counted ? credit_by_count(use.limit_bytes) : 0;
        if (!is_counted) {
            hak_refusal_note(HAK_REFUSED_BY_GROUP, bytes);
        }
        return hak_room.credit_bytes != 0;
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
    // Else requests that the kernel refuses again and again would use up the credit of a group without a limit.
    if (hak_room.credit_bytes < UNLIMITED / 2) {
        hak_room.credit_bytes -= bytes;
    }
    return true;
}

// How much a shard may have beyond its request. Without a limit it never asks again.
static size_t loan_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t left = hak_room.credit_bytes;
    if (left >= UNLIMITED / 2) {
        return UNLIMITED / 4 / HAK_SHARDS_MAX;
    }
    const size_t part = hak_room.limit_bytes / LENT_PARTS / (hak_arena.shard_mask + 1);
    return hak_least(left / 2, part > HAK_UNIT_BYTES ? part : HAK_UNIT_BYTES);
}

static void lend_locked(struct hak_shard *shard) HAK_REQUIRES(&shard->lock, &hak_arena.lock)
{
    if (policy() == OFF) {
        shard->credit_bytes = UNWATCHED;
        return;
    }
    shard->lent_bytes = loan_locked();
    hak_room.credit_bytes -= shard->lent_bytes;
    hak_room.lent_bytes += shard->lent_bytes;
    shard->credit_bytes = shard->lent_bytes;
}

bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes) HAK_REQUIRES(&shard->lock)
{
    hak_lock_take(&hak_arena.lock);
    hak_room.lent_bytes -= shard->lent_bytes;
    shard->lent_bytes = 0;
    shard->credit_bytes = 0;
    const bool may = hak_hook_may_use_locked(bytes);
    if (may) {
        lend_locked(shard);
    }
    hak_lock_drop(&hak_arena.lock);
    return may;
}
