// super.h -- the superslab descriptor: which units are free, and which may be resident.
//
// Owns      nothing; superslabs.h makes and keeps the descriptors.
// Threads   the holder of the shard's lock; for a large block's own mapping, of the arena's.
#pragma once

#include "base/bits.h"
#include "base/list.h"
#include "meta/size_class.h"
#include "meta/unreleased.h"
#include "slab/descriptor.h"

// A superslab, or a large block's own mapping, which has one run descriptor and no units. "lock" means the
// shard's; for a large block's own mapping, the arena's.
struct hak_super {
    char *base;
    size_t mapped_bytes;     // HAK_SUPER_BYTES, or the size of the mapping
    uint64_t free_units;     // a bit per unit that belongs to no run  (lock)
    uint64_t dirty_units;    // the free units that may be resident    (lock)
    uint64_t written_units;  // units that may hold other than zeros   (lock)
    uint64_t purging_units;  // units taken out by a purge under way   (lock)
    uint64_t purged_units;   // free units, purged and not used since  (lock)
    uint64_t huge_units;     // of pages that asked to be huge: a touch makes 32 resident (lock)
    uint64_t huge_new_units; // those of huge_units untouched since they asked (lock)
    uint64_t
        settled_units; // of pages that are not to be collapsed until they are wholly free again (lock)
    struct hak_list all_link;         // in the arena's list of everything (arena lock)
    uint64_t dirty_tick;              // when a unit last became dirty
    _Atomic(struct hak_super *) span; // superslab where the run begins that continues in this one
    // The number of its shard; HAK_NO_SHARD for a large block's own mapping, and when it is not mapped. Changes under the locks of
    // both shards, and only while no run in it is in use.
    _Atomic(uint8_t) shard;
    bool is_mapping; // a large block's own mapping
    // Time stamps by hak_arena.clock: when the run that begins at each unit was made, and when this was mapped.
    // Only tools that read from outside use them (lock).
    union {
        uint32_t made_at[HAK_SUPER_UNITS];
        // for an ended mapping whose addresses the kernel did not take back
        struct hak_unreleased_range unreleased;
    };
    uint32_t mapped_at;
    uint8_t first[HAK_SUPER_UNITS]; // for each unit, the first unit of its run
    struct hak_run slabs[];         // by unit; one for a large block's own mapping
};

// A chunk, the smallest size of a page: the granularity in which untouched memory is counted.
enum { HAK_CHUNK_BYTES = 4096, HAK_UNIT_CHUNKS = HAK_UNIT_BYTES / HAK_CHUNK_BYTES };

// A superslab's place in the queues of its shard. It lies behind the runs, as a large block's own mapping is in no queue.
struct hak_super_place {
    struct hak_super *super;
    struct hak_list whole_link; // in the list of wholly free superslabs
    struct hak_list dirty_link; // in a queue of superslabs with dirty units
    uint8_t dirty_queue;        // enum hak_dirty_queue: the queue that dirty_link is in
    uint8_t free_pages;         // how many of its two huge pages, or places of one, are wholly free
    // For each unit, in use or not, how many chunks at its end were never touched since they came from the kernel: a
    // slab that used only one page has not 64 KiB to purge. And a bit for each unit that has such chunks.
    uint8_t untouched[HAK_SUPER_UNITS];
    uint64_t sparse_units;
    // For each unit in a slab, a bit for each chunk that the slab has purged. Guarded by the lock of the slab's owner.
    // Valid while the slab's purged_blocks is not 0.
    uint16_t purged_chunks[HAK_SUPER_UNITS];
    // Free units in which chunks purged by their last slab are still untouched (lock).
    uint64_t holed_units;
    uint64_t collapsing_units; // of pages that are being collapsed (lock)
    uint64_t refilled_units;   // of purging_units: a collapse may have undone the purge (lock)
};

HAK_INLINE struct hak_super_place *hak_super_place(const struct hak_super *super)
{
    return (struct hak_super_place *)(void *)&super->slabs[HAK_SUPER_UNITS];
}

HAK_INLINE size_t hak_super_purged_bytes(const struct hak_super *super, uint64_t units)
{
    size_t chunks = 0;
    for (; units != 0; units &= units - 1) {
        chunks += hak_count_bits(hak_super_place(super)->purged_chunks[hak_lowest_bit(units)]);
    }
    return chunks * HAK_CHUNK_BYTES;
}

// The units are used again or purged as a whole. Returns the bytes that their slabs had purged before.
HAK_INLINE size_t hak_super_fill_holes(struct hak_super *super, uint64_t units)
{
    struct hak_super_place *place = hak_super_place(super);
    const size_t bytes = hak_super_purged_bytes(super, place->holed_units & units);
    place->holed_units &= ~units;
    return bytes;
}

#define HAK_SUPER_OF_LINK(link, member) (HAK_LIST_ITEM(link, struct hak_super_place, member)->super)

// Queues of superslabs with dirty units, each in the order of dirty_tick: a purge looks only at the
// first ones (queues.c).
enum hak_dirty_queue {
    HAK_DIRTY_WHOLE, // some dirty units are not part of a huge page in use
    HAK_DIRTY_PART,  // all are
    HAK_DIRTY_REST,  // all are, since the others were purged
    HAK_DIRTY_NONE   // in no queue
};
enum { HAK_DIRTY_QUEUES = HAK_DIRTY_NONE }; // the number of queues

// A superslab has two huge pages, or places of one.
enum { HAK_HUGE_UNITS = HAK_SUPER_UNITS / 2 };
#define HAK_HUGE_BYTES (HAK_HUGE_UNITS * HAK_UNIT_BYTES)

// The units of those huge pages whose units are all among `units`.
HAK_INLINE uint64_t hak_super_whole_pages(uint64_t units)
{
    const uint64_t low = (UINT64_C(1) << HAK_HUGE_UNITS) - 1; // the units of the first one
    return ((units & low) == low ? low : 0) | ((units & ~low) == ~low ? ~low : 0);
}

// The units of the huge pages in which any of `units` lies.
HAK_INLINE uint64_t hak_super_pages_of(uint64_t units)
{
    return ~hak_super_whole_pages(~units);
}

// The group that the superslab belongs to while an option is on trial (base/variants.h): every other one.
HAK_INLINE unsigned hak_super_group(const struct hak_super *super)
{
    return (unsigned)((uintptr_t)super->base >> HAK_SUPER_LOG2) & 1;
}

// The dirty units that may be purged first: all but parts of huge pages in use.
HAK_INLINE uint64_t hak_super_whole_units(const struct hak_super *super)
{
    return super->dirty_units & (~super->huge_units | hak_super_whole_pages(super->free_units));
}

// Bytes of these unused units that may be resident: without chunks that are untouched or that their last slab purged.
HAK_INLINE size_t hak_super_touched_bytes(const struct hak_super *super, uint64_t units)
{
    const struct hak_super_place *place = hak_super_place(super);
    size_t bytes = hak_count_bits(units) * HAK_UNIT_BYTES;
    uint64_t parts = units & (place->sparse_units | place->holed_units);
    for (; parts != 0; parts &= parts - 1) {
        const unsigned unit = hak_lowest_bit(parts);
        const bool is_sparse = (place->sparse_units >> unit & 1) != 0;
        const bool is_holed = (place->holed_units >> unit & 1) != 0;
        const unsigned end = HAK_UNIT_CHUNKS - (is_sparse ? place->untouched[unit] : 0U);
        const uint64_t gone = is_holed ? place->purged_chunks[unit] : 0;
        bytes -= (HAK_UNIT_CHUNKS - hak_count_bits(((UINT64_C(1) << end) - 1) & ~gone)) *
                 (size_t)HAK_CHUNK_BYTES;
    }
    return bytes;
}

// The units were touched, maybe to their ends, or purged. They are not dirty.
HAK_INLINE void hak_super_note_touched_locked(struct hak_super *super, uint64_t units)
{
    hak_super_place(super)->sparse_units &= ~units;
    hak_super_place(super)->holed_units &= ~units;
}

HAK_INLINE void hak_super_note_untouched_locked(struct hak_super *super, uint64_t units)
{
    struct hak_super_place *place = hak_super_place(super);
    place->sparse_units |= units;
    for (; units != 0; units &= units - 1) {
        place->untouched[hak_lowest_bit(units)] = HAK_UNIT_CHUNKS;
    }
}
