// arena.h -- what the heap's memory consists of: superslabs, in shards, and large blocks' own mappings; with sums
// of each kind.
//
// Owns      hak_arena: the shards, the list of everything, and the sums.
// Threads   any. Each superslab belongs to a shard, which has a lock of rank "shard". The fields that all shards share
//           have one lock, of rank "arena". Both are taken per slab or large block, not per block.
//
// The files from superslabs.h to purge.h work on these data (src/README.md).
#pragma once

#include "base/list.h"
#include "base/options.h"
#include "base/variants.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/gaps.h"
#include "slab/super.h"

// A part of the arena, with superslabs and a lock of its own. The number of a thread's cache chooses the shard from
// which the thread takes runs, so that threads on many processors do not contend for one lock. A shard takes the
// arena's lock mainly when it needs another superslab (docs/decisions/0030-shards.md).
enum { HAK_SHARDS_MAX = 64, HAK_NO_SHARD = 255 };
struct hak_shard {
    struct hak_lock lock;
    uint8_t number;              // constant
    struct hak_list whole;       // superslabs that are wholly free
    _Atomic(size_t) whole_count; // how many of them; a hint for other shards
    _Atomic(size_t) free_pages;  // wholly free huge pages, or places of one; a hint, too
    struct hak_list dirty[HAK_VARIANTS][HAK_DIRTY_QUEUES];
    struct hak_gaps gaps;      // where free units are
    _Atomic(uint32_t) returns; // counts units that came or left: see hak_arena_returns
    size_t credit_bytes;       // bytes it may use before it asks its control group (limits/room.h)
    size_t lent_bytes;         // initial value of credit_bytes
    // What the shard has not yet added to the arena's sums: see hak_arena_count.
    struct hak_untold {
        _Atomic(size_t) dirty_bytes;
        _Atomic(size_t) waiting_bytes[HAK_VARIANTS];
        _Atomic(size_t) free_bytes;
        _Atomic(size_t) slab_bytes;
        _Atomic(size_t) retaken_bytes;
    } untold;
} HAK_ALIGNED(HAK_CACHE_LINE);

// The most loads that can be waited for at a time (under_way.h).
enum { HAK_UNDER_WAY = 64 };

struct hak_arena {
    struct hak_lock lock;
    struct hak_list all; // superslabs, and large blocks' own mappings
    // The loads that are being given back without the lock (under_way.h), and their threads; number 0: a free entry. The loads
    // themselves lie on the threads' stacks, but this table does not: a vfork child may be killed in the middle of a load.
    struct hak_under_way {
        uint64_t number;
        uintptr_t thread; // its hak_os_thread_mark
    } under_way[HAK_UNDER_WAY];
    uint64_t load_number;           // number of the latest load
    size_t leaving_bytes;           // the part of mapping_bytes that is being unmapped
    struct hak_super *spare_supers; // unused descriptors (superslabs.c)
    struct hak_super *spare_mappings;
    unsigned shard_mask;          // constant: number of shards - 1; the number is a power of two
    _Atomic(size_t) most_bytes;   // super_bytes beyond which the kernel has refused (arena lock)
    _Atomic(size_t) part_bytes;   // a sixteenth of the memory, read before the program's main
    _Atomic(size_t) untold_most;  // a shard adds to the sums once it is this far ahead of them
    _Atomic(uint32_t) purge_hand; // number of the shard to purge first
    // Sums over all shards. With several shards, each may lag by untold_most per shard (hak_arena_tell).
    _Atomic(size_t) dirty_bytes;                 // free units' bytes that may be resident
    _Atomic(size_t) waiting_bytes[HAK_VARIANTS]; // the same, per group (base/variants.h)
    _Atomic(size_t) free_bytes;                  // all free units
    _Atomic(size_t) slab_bytes; // units of slabs, with their free blocks, and units fed to the pool
    _Atomic(size_t) retaken_bytes; // units that were used again after a purge
    _Atomic(size_t) super_bytes;   // mapped superslabs (arena lock)
    _Atomic(size_t) mapping_bytes; // large blocks' own mappings (arena lock)
    _Atomic(size_t) peak_bytes;    // peak of super_bytes + mapping_bytes (arena lock)
    _Atomic(size_t) used_peak;     // peak of hak_arena_used_bytes since hak_arena_forget_peak
    _Atomic(size_t) peak_before;   // used_peak of the period before
    _Atomic(size_t) peak_most;     // most bytes that may stay dirty after a peak (cache/due.c)
    _Atomic(uint64_t) tick;        // the sweeper's clock
    _Atomic(uint32_t) returns;     // number of loads that have ended; a futex
    _Atomic(uint32_t) waiters;     // threads that sleep on `returns`
    _Atomic(uint32_t) clock; // the system's clock when it was last read, in tenths of a second
    _Atomic(bool) is_locked; // the kernel refused the latest purge: the pages are locked in memory
    _Atomic(bool) grants_huge; // the kernel's setting for huge pages, read before main
    _Atomic(bool) is_started;
    struct hak_shard shards[HAK_SHARDS_MAX];
};

HAK_INTERNAL extern struct hak_arena hak_arena;

// Read the system's clock, for the time stamps of what is made next. Not called for each large run, which
// would take twice as long; so the time stamp of a run may be too early.
HAK_INLINE void hak_arena_read_clock(void)
{
    hak_store_relaxed(&hak_arena.clock, (uint32_t)(hak_os_about_now_ns() / 100000000));
}

// Called once, after hak_map_start.
HAK_INTERNAL void hak_arena_start(void);
// Before the first allocation there is no heap, not even an empty list. A program with a malloc of its own may never get one.
HAK_INLINE bool hak_arena_is_started(void)
{
    return hak_load_acquire(&hak_arena.is_started); // pairs with: hak_arena_start
}

// The shard from which the owner with that tag takes its runs.
HAK_INLINE unsigned hak_arena_shard(uint32_t tag)
{
    return tag >> 8 & hak_arena.shard_mask;
}

// Bytes in use in superslabs: slabs, with the free blocks in them, and large runs. Any thread. Other threads may change both sums
// between the two reads; then the result is too low.
HAK_INLINE size_t hak_arena_used_bytes(void)
{
    const size_t all = hak_load_relaxed(&hak_arena.super_bytes);
    const size_t unused = hak_load_relaxed(&hak_arena.free_bytes);
    return all > unused ? all - unused : 0;
}

// The highest hak_arena_used_bytes since the last call but one of hak_arena_forget_peak. Any thread.
HAK_INLINE size_t hak_arena_recent_peak(void)
{
    const size_t lately = hak_load_relaxed(&hak_arena.used_peak);
    const size_t before = hak_load_relaxed(&hak_arena.peak_before);
    return lately > before ? lately : before;
}
HAK_INTERNAL void hak_arena_forget_peak(void);

// Bytes of the heap that are, or may be, resident: the limits apply to these.
HAK_INLINE size_t hak_arena_heap_bytes(void)
{
    return hak_arena_used_bytes() + hak_load_relaxed(&hak_arena.dirty_bytes) +
           hak_load_relaxed(&hak_arena.mapping_bytes);
}
// May the heap grow by `bytes` within option limit_hard? The answer holds while the caller holds the arena's lock; without it
// other threads may grow the heap meanwhile.
HAK_INTERNAL bool hak_arena_has_room(size_t bytes);
// Called after hak_arena_has_room has said no and everything was purged: could another such purge make room? Meanwhile other
// threads may have freed, may be giving memory back, or may have changed the sums during the first answer. Without a limit: false.
// Takes the locks of all shards and the arena's; the caller holds none of them.
HAK_INTERNAL bool hak_arena_has_room_soon(size_t bytes);
// A count of what has come back, over all shards and mappings. If it changes while a request looks at one shard after the
// other, the request may succeed after all.
HAK_INTERNAL uint32_t hak_arena_returns(void);
// Are `units` units free, in any places, and allowed by limit_hard? A hint.
HAK_INTERNAL bool hak_arena_has_units(unsigned units);
// Bring the sums up to date. With `may_be_late` they may lag from then on, until the next call, which must come soon. Without it
// they stay exact, as they are at the start. One thread at a time, which holds no shard's lock.
HAK_INTERNAL void hak_arena_tell(bool may_be_late);
// The same for a caller that holds all locks; the sums are exact when it returns.
HAK_INTERNAL void hak_arena_tell_all(void);

// The shard of a superslab; NULL if it has none. The caller holds the shard's lock, or a run of the superslab is in use.
HAK_INLINE struct hak_shard *hak_arena_shard_of(const struct hak_super *super)
{
    const unsigned number = hak_load_relaxed(&super->shard);
    return number != HAK_NO_SHARD ? &hak_arena.shards[number] : NULL;
}

// Try the lock of a superslab's shard, whose rank comes before the arena's. NULL: it has no shard, the lock is taken, or the
// superslab has just moved to another shard.
HAK_INTERNAL struct hak_shard *hak_arena_try_shard_of(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);

// Add to a sum over all shards. A single shard does so under its lock. With several shards, each adds at once, or, while the
// sweeper is awake, only when it has much to add: else all processors would contend for the word.
HAK_INLINE void hak_arena_count(_Atomic(size_t) *untold, _Atomic(size_t) *sum, size_t bytes)
{
    if (HAK_LIKELY(hak_arena.shard_mask == 0)) {
        hak_count(sum, bytes);
        return;
    }
    const size_t most = hak_load_relaxed(&hak_arena.untold_most);
    const size_t now = hak_load_relaxed(untold) + bytes;
    const bool is_enough = now + most > 2 * most;
    if (is_enough) {
        hak_add_relaxed(sum, now);
    }
    hak_store_relaxed(untold, is_enough ? 0 : now);
}
#define HAK_ARENA_COUNT(shard, sum, bytes) \
    hak_arena_count(&(shard)->untold.sum, &hak_arena.sum, (bytes))

HAK_INLINE void hak_arena_count_dirty(struct hak_shard *shard,
                                      const struct hak_super *super,
                                      size_t bytes) HAK_REQUIRES(&shard->lock)
{
    HAK_ARENA_COUNT(shard, dirty_bytes, bytes);
    HAK_ARENA_COUNT(shard, waiting_bytes[hak_super_group(super)], bytes);
}

// Is the kernel about to refuse more superslabs? Then shards share what they have: see hak_runs_take.
HAK_INLINE bool hak_arena_is_short(void)
{
    return hak_arena.shard_mask != 0 &&
           HAK_UNLIKELY(hak_load_relaxed(&hak_arena.super_bytes) +
                            (hak_arena.shard_mask + 1) * HAK_SUPER_BYTES >
                        hak_load_relaxed(&hak_arena.most_bytes));
}

// Called after units have come back to the shard, or have left it.
HAK_INLINE void hak_arena_note_return(struct hak_shard *shard) HAK_REQUIRES(&shard->lock)
{
    hak_store_release(&shard->returns, // pairs with: hak_arena_returns
                      hak_load_relaxed(&shard->returns) + 1);
}

// Is the heap limited to a size (option limit_hard)?
HAK_INLINE bool hak_arena_is_limited(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_options.limit_hard) != 0);
}

// Called after memory for blocks was mapped.
HAK_INTERNAL void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock);
