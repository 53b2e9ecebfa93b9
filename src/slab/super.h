// super.h -- what is known of a superslab: which of its units are free, and which may be resident.
//
// Owns      nothing; superslabs.h makes descriptors and keeps them.
// Threads   the holder of the lock of its shard; of a large block's own mapping, of the arena's.
#pragma once

#include "base/bits.h"
#include "base/list.h"
#include "meta/size_class.h"
#include "meta/unreleased.h"
#include "slab/descriptor.h"

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
    uint64_t huge_units;      // of pages that asked to be huge: one touch makes 32 resident (lock)
    uint64_t huge_new_units;  // of those of them that nobody has touched since (lock)
    struct hak_list all_link; // in the arena's list of everything (arena lock)
    uint64_t dirty_tick;      // when a unit last became dirty
    _Atomic(struct hak_super *) span; // where the run begins that this superslab continues
    // The one it belongs to, by number; HAK_NO_SHARD when it is one large block's mapping, or not mapped. Changes under the locks of
    // both shards; a run in it that is in use keeps it from changing.
    _Atomic(uint8_t) shard;
    bool is_mapping; // a large block's own mapping
    // For the first unit of each run when it was made, and when this was mapped, by hak_arena.clock. Nobody but
    // readers from outside wants to know (lock).
    union {
        uint32_t made_at[HAK_SUPER_UNITS];
        // of a mapping that has ended, when the kernel has refused to take it back
        struct hak_unreleased_range unreleased;
    };
    uint32_t mapped_at;
    uint8_t first[HAK_SUPER_UNITS]; // the first unit of the run that a unit is in
    struct hak_run slabs[];         // by unit; one for a mapping of its own
};

// What is untouched of a unit is counted in these: the smallest pages.
enum { HAK_CHUNK_BYTES = 4096, HAK_UNIT_CHUNKS = HAK_UNIT_BYTES / HAK_CHUNK_BYTES };

// Where a superslab stands in the queues of its shard: behind its runs, as a mapping of its own is in none.
struct hak_super_place {
    struct hak_super *super;
    struct hak_list whole_link; // in the list of those wholly free
    struct hak_list dirty_link; // in a queue of those with dirty units
    uint8_t dirty_queue;        // enum hak_dirty_queue: the one that dirty_link is in
    uint8_t free_pages;         // of its two huge pages, or their places, so many are wholly free
    // At the end of each unit, chunks that nobody has touched since it came from the kernel, in use or not: a slab of
    // which a page was used is not 64 KiB to give back. And a bit for each unit that has some.
    uint8_t untouched[HAK_SUPER_UNITS];
    uint64_t sparse_units;
    // Of a unit in a slab, a bit for each chunk that the slab has given back. The lock of the slab's owner; they count as
    // long as its purged_blocks is not 0.
    uint16_t purged_chunks[HAK_SUPER_UNITS];
    // Free units that have some from their last slab, which nobody has touched since (lock).
    uint64_t holed_units;
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

// Free units are used again, or are given back as a whole. Returns what had been given back of them before.
HAK_INLINE size_t hak_super_fill_holes(struct hak_super *super, uint64_t units)
{
    struct hak_super_place *place = hak_super_place(super);
    const size_t bytes = hak_super_purged_bytes(super, place->holed_units & units);
    place->holed_units &= ~units;
    return bytes;
}

#define HAK_SUPER_OF_LINK(link, member) (HAK_LIST_ITEM(link, struct hak_super_place, member)->super)

// Superslabs with dirty units, in the order of dirty_tick: who gives back looks at the first ones only
// (queues.c).
enum hak_dirty_queue {
    HAK_DIRTY_WHOLE, // some are no part of a huge page in use
    HAK_DIRTY_PART,  // all are
    HAK_DIRTY_REST,  // all are, for the others have been given back
    HAK_DIRTY_NONE   // in none of them
};
enum { HAK_DIRTY_QUEUES = HAK_DIRTY_NONE }; // so many there are

// A superslab has two huge pages, or the places of two.
enum { HAK_HUGE_UNITS = HAK_SUPER_UNITS / 2 };

// Of the two pages each whose units are all among `units`.
HAK_INLINE uint64_t hak_super_whole_pages(uint64_t units)
{
    const uint64_t low = (UINT64_C(1) << HAK_HUGE_UNITS) - 1; // the units of the first
    return ((units & low) == low ? low : 0) | ((units & ~low) == ~low ? ~low : 0);
}

// The units of the huge pages that any of `units` lies in.
HAK_INLINE uint64_t hak_super_pages_of(uint64_t units)
{
    return ~hak_super_whole_pages(~units);
}

// Which of two groups it belongs to while an option is on trial (base/variants.h): by turns.
HAK_INLINE unsigned hak_super_group(const struct hak_super *super)
{
    return (unsigned)((uintptr_t)super->base >> HAK_SUPER_LOG2) & 1;
}

// The dirty units that may go first: all but parts of huge pages in use.
HAK_INLINE uint64_t hak_super_whole_units(const struct hak_super *super)
{
    return super->dirty_units & (~super->huge_units | hak_super_whole_pages(super->free_units));
}

// What may be resident of these units, if nobody uses them: not what nobody has touched, nor what their last slab gave back.
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

// Somebody has touched the units, maybe all of them to the end; or they were given back. They are not dirty.
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
