// arena.h -- superslabs, and the runs of units in them.
//
// Layer     slab (may include: base, os, meta)
// Owns      every superslab, every mapping of a large block's own, which units are
//           free and which of those have resident pages ("dirty").
// Threads   any. Superslabs belong to shards, each with a lock, rank "shard"; what is common to all has one, rank
//           "arena". Taken per slab or large block, not per block.
// Fails     NULL when the kernel refuses; what was free before is still free.
#ifndef HAK_SLAB_ARENA_H
#define HAK_SLAB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arms.h"
#include "base/list.h"
#include "meta/kept.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/gaps.h"
#include "slab/slab.h"

// A superslab, or a large block's own mapping (then with one descriptor and no units). "lock": its shard's; of a
// large block's own mapping the arena's.
struct hak_super {
    char *base;
    size_t mapped_bytes;      // HAK_SUPER_BYTES, or those of the mapping
    uint64_t free_units;      // a bit per unit that no run has       (lock)
    uint64_t dirty_units;     // those of free_units that may be resident (lock)
    uint64_t written_units;   // units that do not read as zero; with huge pages fewer than the
                              // resident ones                           (lock)
    uint64_t purging_units;   // units taken out by a purge that is under way (lock)
    uint64_t purged_units;    // free units that were given back and not used since (lock)
    uint64_t tail_units;      // last units of runs in use that may be resident behind the user's
                              // bytes                                   (lock)
    struct hak_list all_link; // in the arena's list of everything (arena lock)
    uint64_t dirty_tick;      // when a unit last became dirty
    _Atomic(struct hak_super *)
        span; // the superslab in which the run begins that this one continues
    // The one it belongs to, by number; HAK_NO_SHARD when it is a lone one or not mapped. Changes under the locks of
    // both shards; a run in it that is in use keeps it from changing.
    _Atomic(uint8_t) shard;
    bool is_lone;     // a large block's own mapping
    bool is_huge;     // asked for huge pages: one touch makes 32 units resident
    bool is_huge_new; // and nobody has touched it since
    // For the first unit of each run when it was made, and when this was mapped, by hak_arena.clock. Nobody but
    // readers from outside wants to know (lock).
    union {
        uint32_t made_at[HAK_SUPER_UNITS];
        struct hak_kept_range
            kept; // of a lone one that has ended, when the kernel has refused to take it back
    };
    uint32_t mapped_at;
    uint8_t first[HAK_SUPER_UNITS]; // the first unit of the run that a unit is in
    struct hak_slab slabs[];        // by unit; one for a mapping of its own
};

// What is untouched of a unit is counted in these: the smallest pages.
enum { HAK_CHUNK_BYTES = 4096, HAK_UNIT_CHUNKS = HAK_UNIT_BYTES / HAK_CHUNK_BYTES };

// Where a superslab stands in the queues of its shard: behind its runs, as a mapping of its own is in none.
struct hak_super_place {
    struct hak_super *super;
    struct hak_list whole_link; // in the list of those wholly free
    struct hak_list dirty_link; // in a queue of those with dirty units
    struct hak_list tail_link;  // in that of those with tails
    uint64_t tail_tick;         // when a unit became dirty last, or a tail was noted
    uint8_t dirty_queue;        // enum hak_dirty_queue: the one that dirty_link is in
    // At the end of each unit, chunks that nobody has touched since it came from the kernel, in use or not: a slab of
    // which a page was used is not 64 KiB to give back. And a bit for each unit that has some.
    uint8_t untouched[HAK_SUPER_UNITS];
    uint64_t sparse_units;
    // Of a unit in a slab, a bit for each chunk that the slab has given back. The lock of the slab's owner; they count as
    // long as its purged_blocks is not 0.
    uint16_t purged_chunks[HAK_SUPER_UNITS];
};

HAK_INLINE struct hak_super_place *hak_super_place(const struct hak_super *super)
{
    return (struct hak_super_place *)(void *)&super->slabs[HAK_SUPER_UNITS];
}

#define HAK_SUPER_OF_LINK(link, member) (HAK_LIST_ITEM(link, struct hak_super_place, member)->super)

// Superslabs with dirty units, in the order of dirty_tick: who gives back looks at the first ones only
// (queues.c).
enum hak_dirty_queue {
    HAK_DIRTY_WHOLE, // some are no part of a huge page in use
    HAK_DIRTY_PART,  // all are
    HAK_DIRTY_REST,  // all are, for the others have been given back
    HAK_DIRTY_QUEUES,
    HAK_DIRTY_NONE = HAK_DIRTY_QUEUES
};

// A part of the arena, with superslabs and a lock of its own. Each thread has its runs from one, by the number of its
// cache, so that threads on many processors do not wait for each other. What is common to all, addresses above all, is
// asked for when a superslab is missing (docs/decisions/0030-shards.md).
enum { HAK_SHARDS_MAX = 64, HAK_NO_SHARD = 255 };
struct hak_shard {
    struct hak_lock lock;
    uint8_t number;              // constant
    struct hak_list whole;       // superslabs that are wholly free
    _Atomic(size_t) whole_count; // so many; a hint for other shards
    struct hak_list dirty[HAK_ARMS][HAK_DIRTY_QUEUES];
    struct hak_list tails[HAK_ARMS]; // superslabs with tails, in the order of tail_tick
    struct hak_gaps gaps;            // where free units are
    size_t credit_bytes; // may be handed out before the control group is looked at (room.h);
    size_t lent_bytes;   // what it was at first
    // How far the sums in the arena are behind: see hak_shard_count.
    struct hak_untold {
        _Atomic(size_t) dirty_bytes;
        _Atomic(size_t) waiting_bytes[HAK_ARMS];
        _Atomic(size_t) tail_bytes;
        _Atomic(size_t) free_bytes;
        _Atomic(size_t) slab_bytes;
        _Atomic(size_t) retaken_bytes;
    } untold;
} HAK_ALIGNED(HAK_CACHE_LINE);

// Loads that are waited for, at a time.
enum { HAK_UNDER_WAY = 64 };

struct hak_arena {
    struct hak_lock lock;
    struct hak_list all; // superslabs and lone mappings
    // What is being given back without the lock (purge.c): who does that for which load, or number 0. Not in the
    // loads, which lie on their threads' stacks: a vfork child may be killed in the middle of one.
    struct hak_under_way {
        uint64_t number;
        uintptr_t thread; // its mark
    } under_way[HAK_UNDER_WAY];
    uint64_t load_number;           // of the latest load
    size_t leaving_bytes;           // of lone_bytes, what is being unmapped
    struct hak_super *spare_supers; // descriptors to use again, linked by `base`
    struct hak_super *spare_lones;
    unsigned
        shard_mask; // constant after the start: one less than there are shards, which is a power of two
    _Atomic(size_t) part_bytes;   // a sixteenth of the memory, before the program's main
    _Atomic(size_t) untold_most;  // a shard tells the sums when it is so far ahead
    _Atomic(uint32_t) purge_hand; // the shard to give back from first
    // Sums of the shards. With more than one they may be behind by untold_most for each (hak_arena_tell).
    _Atomic(size_t) dirty_bytes;             // of free units, what may be resident
    _Atomic(size_t) waiting_bytes[HAK_ARMS]; // the same by group (base/arms.h)
    _Atomic(size_t) tail_bytes;              // of tail units, behind the users' bytes
    _Atomic(size_t) free_bytes;              // of free units
    _Atomic(size_t) slab_bytes;              // of slabs, whatever is free in them
    _Atomic(size_t) retaken_bytes; // of units that were used again after they had been given back
    _Atomic(size_t) super_bytes;   // of superslabs mapped (arena lock)
    _Atomic(size_t) lone_bytes;    // of lone mappings (arena lock)
    _Atomic(size_t) peak_bytes;  // most that super_bytes and lone_bytes were together (arena lock)
    _Atomic(size_t) used_peak;   // most that was in use of superslabs since hak_arena_forget_peak
    _Atomic(size_t) peak_before; // the same of the time before that
    _Atomic(size_t) peak_most;   // of what was in use lately, may wait when it is no longer
    _Atomic(uint64_t) tick;      // the purger's clock
    _Atomic(uint32_t) returns;   // counts loads that have been given back: slept on
    _Atomic(uint32_t) waiters;   // threads that sleep there
    _Atomic(uint32_t) clock;     // tenths of a second, by the system's clock, when it was last read
    _Atomic(bool) is_locked;     // the kernel has refused the latest purge: pages locked in memory
    _Atomic(unsigned)
        huge_pages; // enum hak_huge_pages: the kernel's setting, read before the program's main
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

// The shard that an owner with that tag has its runs from.
HAK_INLINE unsigned hak_arena_shard(uint32_t tag)
{
    return tag >> 8 & hak_arena.shard_mask;
}

// A run for `bytes` (at most HAK_LARGE_RUN_MAX; a long one may go on in the superslabs that follow) from that shard or,
// when it cannot have one, from another,
// aligned to `align_units` (a power of two, at most 64). In the descriptor are `bytes`, `state` (LARGE, or
// NONE for who still has to make a slab of it), and in `zeroed` whether the pages are untouched.
HAK_INTERNAL struct hak_slab *hak_arena_take(unsigned shard,
                                             size_t bytes,
                                             unsigned align_units,
                                             enum hak_slab_state state);
HAK_INTERNAL void hak_arena_give(struct hak_slab *run);
// Let a run have `bytes` where it lies. False when the units behind it are in use.
HAK_INTERNAL bool hak_arena_resize(struct hak_slab *run, size_t bytes);

// A mapping of its own for one block, aligned to `alignment` (at most superslab size is free of
// cost). `bytes` is a multiple of the page size.
HAK_INTERNAL struct hak_slab *hak_arena_map(size_t bytes, size_t alignment);
// As above, to the byte, with addresses before and behind it that nobody can touch; its end lies as close to
// them as its alignment, at most that of a unit, allows. NULL also when there are as many as may be: each takes one or
// three of the kernel's mappings, and half of those are the program's.
HAK_INTERNAL struct hak_slab *hak_arena_map_guarded(size_t bytes, size_t alignment);
// Read how many those are. Once, before the program's main.
HAK_INTERNAL void hak_arena_guards_start(void);
// Let it have `bytes`, with its start where it is and the guard at the next page. Die if what it gets, or what goes, was
// written before. False, and nothing changed, when there is no room behind it.
HAK_INTERNAL bool hak_arena_resize_guarded(struct hak_slab *lone, size_t bytes);
// Keep addresses behind it, if that can be had, so that it can grow by an eighth.
HAK_INTERNAL void hak_arena_leave_room(struct hak_slab *lone);
// Is it such a one? Die if what lies between it and those addresses was written.
HAK_INTERNAL bool hak_arena_is_guarded(struct hak_slab *run);
HAK_INTERNAL void hak_arena_check_guarded(struct hak_slab *lone);
HAK_INTERNAL void hak_arena_unmap(struct hak_slab *lone);
// The mapping of its own that `p` lies in where the map does not know it, or NULL. Takes the lock.
HAK_INTERNAL struct hak_super *hak_arena_find_outside(const void *p);
// Grow or shrink it, moving its pages (not their content) if need be: lone->base may change.
// False: nothing changed.
HAK_INTERNAL bool hak_arena_remap(struct hak_slab *lone, size_t bytes);

// What is in use of the superslabs: by slabs, whatever is free in them, and by runs. Any thread: the one may be read
// before another thread changes both, and the other after it.
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
           hak_load_relaxed(&hak_arena.lone_bytes);
}
// May it grow by as many? Not over option limit_hard. To be sure that others do not grow meanwhile as well, hold the
// arena's lock.
HAK_INTERNAL bool hak_arena_has_room(size_t bytes);
// Make the sums what they should be. `may_be_late`: from then on they may be behind, until the next call, which is to come soon;
// else they are exact. At the start they are. By one thread at a time, with no lock of a shard's.
HAK_INTERNAL void hak_arena_tell(bool may_be_late);
// The same by the holder of all locks: now.
HAK_INTERNAL void hak_arena_tell_all(void);

// How many ticks ago the last free of a superslab must be.
struct hak_purge_age {
    uint64_t whole; // for free units that are no part of a huge page in use
    uint64_t part;  // for those that are
};

// Give back dirty pages of that age, in each shard those that have waited longest first, until `limit` bytes are
// reached, and then tails. Returns the bytes given back.
HAK_INTERNAL size_t hak_arena_purge(struct hak_purge_age age, size_t limit);
// The same with an age for each group of superslabs (base/arms.h).
HAK_INTERNAL size_t hak_arena_purge_groups(const struct hak_purge_age ages[HAK_ARMS], size_t limit);
// What other threads are giving back at this moment is free when this returns: before memory is refused.
HAK_INTERNAL void hak_arena_wait_for_purges(void);
// After fork, in the child: purges that were under way in the parent are not here.
HAK_INTERNAL void hak_arena_forked_locked(void) HAK_REQUIRES(&hak_arena.lock);
// Bytes that wait in the superslabs of each group (base/arms.h).
HAK_INTERNAL void hak_arena_waiting(size_t bytes[HAK_ARMS]);
// Unmap superslabs that are wholly free. Returns the bytes unmapped.
HAK_INTERNAL size_t hak_arena_trim(void);

#endif
