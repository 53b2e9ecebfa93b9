// arena.h -- all that the heap's memory consists of: superslabs, in shards, and large blocks' own mappings; and how
// much there is of each kind.
//
// Owns      hak_arena: the shards, the list of everything, and the sums.
// Threads   any. Superslabs belong to shards, each with a lock, rank "shard"; what is common to all has one, rank
//           "arena". Taken per slab or large block, not per block.
//
// What is done with it has rooms of its own, from superslabs.h to purge.h (src/README.md).
#pragma once

#include "base/list.h"
#include "base/options.h"
#include "base/variants.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/gaps.h"
#include "slab/super.h"

// A part of the arena, with superslabs and a lock of its own. Each thread has its runs from one, by the number of its
// cache, so that threads on many processors do not wait for each other. What is common to all, addresses above all, is
// asked for when a superslab is missing (docs/decisions/0030-shards.md).
enum { HAK_SHARDS_MAX = 64, HAK_NO_SHARD = 255 };
struct hak_shard {
    struct hak_lock lock;
    uint8_t number;              // constant
    struct hak_list whole;       // superslabs that are wholly free
    _Atomic(size_t) whole_count; // so many; a hint for other shards
    _Atomic(size_t) free_pages;  // huge pages, or their places, that are wholly free; likewise
    struct hak_list dirty[HAK_VARIANTS][HAK_DIRTY_QUEUES];
    struct hak_gaps gaps; // where free units are
    _Atomic(uint32_t)
        returns; // counts units that came, or went to another shard or the kernel: see hak_arena_returns
    size_t credit_bytes; // may be handed out before the control group is looked at (limits/room.h);
    size_t lent_bytes;   // what it was at first
    // How far the sums in the arena are behind: see hak_arena_count.
    struct hak_untold {
        _Atomic(size_t) dirty_bytes;
        _Atomic(size_t) waiting_bytes[HAK_VARIANTS];
        _Atomic(size_t) free_bytes;
        _Atomic(size_t) slab_bytes;
        _Atomic(size_t) retaken_bytes;
    } untold;
} HAK_ALIGNED(HAK_CACHE_LINE);

// Loads that are waited for, at a time.
enum { HAK_UNDER_WAY = 64 };

struct hak_arena {
    struct hak_lock lock;
    struct hak_list all; // superslabs, and large blocks' own mappings
    // What is being given back without the lock (under_way.h): who does that for which load, or number 0. Not in the
    // loads, which lie on their threads' stacks: a vfork child may be killed in the middle of one.
    struct hak_under_way {
        uint64_t number;
        uintptr_t thread; // its mark
    } under_way[HAK_UNDER_WAY];
    uint64_t load_number;           // of the latest load
    size_t leaving_bytes;           // of mapping_bytes, what is being unmapped
    struct hak_super *spare_supers; // descriptors to use again (superslabs.c)
    struct hak_super *spare_mappings;
    unsigned shard_mask; // constant: one less than there are shards, which is a power of two
    _Atomic(size_t)
        most_bytes; // of superslabs, as far as is known: the kernel has refused more (arena lock)
    _Atomic(size_t) part_bytes;   // a sixteenth of the memory, before the program's main
    _Atomic(size_t) untold_most;  // a shard tells the sums when it is so far ahead
    _Atomic(uint32_t) purge_hand; // the shard to give back from first
    // Sums of the shards. With more than one they may be behind by untold_most for each (hak_arena_tell).
    _Atomic(size_t) dirty_bytes;                 // of free units, what may be resident
    _Atomic(size_t) waiting_bytes[HAK_VARIANTS]; // the same by group (base/variants.h)
    _Atomic(size_t) free_bytes;                  // of free units
    _Atomic(size_t) slab_bytes; // of slabs, whatever is free in them, and of units fed to the pool
    _Atomic(size_t) retaken_bytes; // of units that were used again after they had been given back
    _Atomic(size_t) super_bytes;   // of superslabs mapped (arena lock)
    _Atomic(size_t) mapping_bytes; // of large blocks' own mappings (arena lock)
    _Atomic(size_t) peak_bytes;    // most that both were together (arena lock)
    _Atomic(size_t) used_peak;     // most that was in use of superslabs since hak_arena_forget_peak
    _Atomic(size_t) peak_before;   // the same of the time before that
    _Atomic(size_t) peak_most;     // of what was in use lately, may wait when it is no longer
    _Atomic(uint64_t) tick;        // the sweeper's clock
    _Atomic(uint32_t) returns;     // counts loads that have been given back: slept on
    _Atomic(uint32_t) waiters;     // threads that sleep there
    _Atomic(uint32_t) clock; // tenths of a second, by the system's clock, when it was last read
    _Atomic(bool) is_locked; // the kernel has refused the latest purge: pages locked in memory
    _Atomic(unsigned) huge_pages; // enum hak_huge_pages: the kernel's setting, read before main
    _Atomic(bool) is_started;
    struct hak_shard shards[HAK_SHARDS_MAX];
};

HAK_INTERNAL extern struct hak_arena hak_arena;

// Read the system's clock: for what is made next. Not for each large run, which would take twice as long; so
// what is noted of one may be earlier than it was.
HAK_INLINE void hak_arena_read_clock(void)
{
    hak_store_relaxed(&hak_arena.clock, (uint32_t)(hak_os_about_now_ns() / 100000000));
}

// Once, when the map is there.
HAK_INTERNAL void hak_arena_start(void);
// Before anything is allocated there is no heap: not even empty lists. A program that has a malloc of its own may never get one.
HAK_INLINE bool hak_arena_is_started(void)
{
    return hak_load_acquire(&hak_arena.is_started); // pairs with: hak_arena_start
}

// The shard that an owner with that tag has its runs from.
HAK_INLINE unsigned hak_arena_shard(uint32_t tag)
{
    return tag >> 8 & hak_arena.shard_mask;
}

// What is in use of the superslabs: by slabs, whatever is free in them, and by large runs. Any thread. Others may change both sums
// between the two reads, so that more seems unused than there is.
HAK_INLINE size_t hak_arena_used_bytes(void)
{
    const size_t all = hak_load_relaxed(&hak_arena.super_bytes);
    const size_t unused = hak_load_relaxed(&hak_arena.free_bytes);
    return all > unused ? all - unused : 0;
}

// The most that was in use of them lately: since the last call but one of hak_arena_forget_peak. Any thread.
HAK_INLINE size_t hak_arena_recent_peak(void)
{
    const size_t lately = hak_load_relaxed(&hak_arena.used_peak);
    const size_t before = hak_load_relaxed(&hak_arena.peak_before);
    return lately > before ? lately : before;
}
HAK_INTERNAL void hak_arena_forget_peak(void);

// Bytes of the heap that are resident or may be: what limits count.
HAK_INLINE size_t hak_arena_heap_bytes(void)
{
    return hak_arena_used_bytes() + hak_load_relaxed(&hak_arena.dirty_bytes) +
           hak_load_relaxed(&hak_arena.mapping_bytes);
}
// May the heap grow by so many bytes, within option limit_hard? The answer holds while the arena's lock is held: without it others
// may grow the heap meanwhile.
HAK_INTERNAL bool hak_arena_has_room(size_t bytes);
// It was said no, and then all went back that could go. But others may have freed since, or be giving back, or have counted in the
// middle of the answer: may there be room when all goes back once more? Without a limit: no. Takes the locks of all shards, so
// the caller has none of the arena's and theirs.
HAK_INTERNAL bool hak_arena_has_room_soon(size_t bytes);
// Counts what has come back, of all shards and of mappings. A request that was refused, and looked at one shard after the other
// meanwhile, may be served if it was not the same before.
HAK_INTERNAL uint32_t hak_arena_returns(void);
// Are so many units free, wherever they lie, and within that limit? A hint.
HAK_INTERNAL bool hak_arena_has_units(unsigned units);
// Bring the sums up to date. `may_be_late`: from then on they may be behind, until the next call, which has to come soon. Else they
// stay exact, as they are at the start. One thread at a time, without a shard's lock.
HAK_INTERNAL void hak_arena_tell(bool may_be_late);
// The same by the holder of all locks: now.
HAK_INTERNAL void hak_arena_tell_all(void);

// The shard of a superslab with a run in use, or whose shard's lock the caller holds; NULL for no superslab.
HAK_INLINE struct hak_shard *hak_arena_shard_of(const struct hak_super *super)
{
    const unsigned number = hak_load_relaxed(&super->shard);
    return number != HAK_NO_SHARD ? &hak_arena.shards[number] : NULL;
}

// Add to a sum of all shards. The only shard does so under its lock. Of several each tells it at once, or, while the sweeper is
// awake, when it has much to tell: all processors would write the word in turn.
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

// Is the kernel about to refuse more superslabs? Then shards keep nothing apart: see hak_runs_take.
HAK_INLINE bool hak_arena_is_short(void)
{
    return hak_arena.shard_mask != 0 &&
           HAK_UNLIKELY(hak_load_relaxed(&hak_arena.super_bytes) +
                            (hak_arena.shard_mask + 1) * HAK_SUPER_BYTES >
                        hak_load_relaxed(&hak_arena.most_bytes));
}

// The caller has returned units to the shard, or moved them out of it.
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

// Something was mapped for blocks.
HAK_INTERNAL void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock);
