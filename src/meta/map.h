// map.h -- what an address is: one load.
//
// Owns      the table of units (64 KiB each) and the table of superslabs.
// Threads   read: any, without a lock. written: under the arena's lock (slots) or
//           by whoever owns the slab (units).
// Fails     hak_map_start returns false when not even small tables can be had.
//
// Both tables are indexed by address bits with a mask, so that any 64-bit value
// leads to an entry: no bounds check, and a wild pointer reads "not ours". The
// mask is as wide as the table that the kernel would give us; two spans of
// addresses that share an entry are never used at the same time (map slots), so
// narrow tables cost nothing but address space. Entries are hints until the
// superslab's descriptor confirms the whole address (hak_map_super), or hak_map_covers does.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "meta/size_class.h"

struct hak_super;

// A unit's entry: the owner's tag (its id << 8) plus the size class. 0: not ours.
// A large block's first unit has no owner and, for a class, its bin counted on from the small classes: one of
// HAK_LARGE_BINS; or HAK_LARGE_NO_BIN, below them: too large for one, a heap's, or a sample. Plus HAK_MAP_KEPT when
// it is free and kept.
// A slab with sampled blocks has HAK_MAP_SAMPLED in its entries, which makes them nobody's own.
#define HAK_MAP_NOTHING    0U
#define HAK_MAP_KEPT       0x80000000U
#define HAK_MAP_SAMPLED    0x80000000U
#define HAK_MAP_LARGE(bin) (HAK_SMALL_CLASSES + (bin))
#define HAK_LARGE_NO_BIN   UINT32_MAX
#define HAK_MAP_CLASS(e)   ((e) & 0xFFU)
#define HAK_MAP_TAG(e)     ((e) & 0x7FFFFF00U)

// The first owner's tag is 256. Less that, or up to HAK_SMALL_CLASSES more (hak_cache.hit_tag), no large
// block's entry may look like a small class.
_Static_assert(2 * HAK_SMALL_CLASSES + HAK_LARGE_BINS <= 256, "entries of large blocks");

// Where the window begins under ThreadSanitizer and MemorySanitizer (map.c).
#define HAK_MAP_WINDOW_OF_SANITIZERS UINT64_C(0x7F0000000000)

// Words of slots, at most: a bit for each superslab of 1 TiB.
enum { HAK_MAP_WORDS = 4096 };

struct hak_map {
    _Atomic(uint32_t) *units;
    uint64_t unit_mask;
    _Atomic(struct hak_super *) *supers;
    uint64_t super_mask;
    _Atomic(uint64_t) covered_units; // all, or 0 once something of ours lies outside the window
    char *window;                    // where we like to put superslabs: as long as the table covers
    uint64_t *slots;                 // a bit per span of superslab size whose addresses are in use
    uint64_t next_slot;              // next fit
    uint64_t committed[64];          // a bit per part of `units` that is writable
    // Of the slots, a bit for each word that is not 0, and for each that is all ones.
    uint64_t used_words[HAK_MAP_WORDS / 64];
    uint64_t full_words[HAK_MAP_WORDS / 64];
    uint64_t missing_row; // so many free slots in a row there are not
    uint64_t used_slots;
    uint64_t outside_at; // where, in superslabs, addresses.c tries next outside of the window
    bool has_window;     // the kernel has mapped something there
};

HAK_INTERNAL extern struct hak_map hak_map;

// Set up; called once before anything else. False when there is no memory at all.
HAK_INTERNAL bool hak_map_start(void);

HAK_INLINE _Atomic(uint32_t) *hak_map_place(const void *p)
{
    return &hak_map.units[((uintptr_t)p >> HAK_UNIT_LOG2) & hak_map.unit_mask];
}

HAK_INLINE uint32_t hak_map_entry(const void *p)
{
    return hak_load_relaxed(hak_map_place(p));
}

// Does the entry of `p` speak of `p`, not of an address that shares the entry? When this says no, the
// superslab's descriptor knows.
HAK_INLINE bool hak_map_covers(const void *p)
{
    const uint64_t unit = ((uintptr_t)p - (uintptr_t)hak_map.window) >> HAK_UNIT_LOG2;
    return unit < hak_load_relaxed(&hak_map.covered_units);
}

// Does a unit in our window begin at `p`? Then `entry` is the unit's, which speaks of no other address. Turned
// by 16 bits, an address in the middle of a unit is beyond every count.
HAK_INLINE bool hak_map_is_start(const void *p, _Atomic(uint32_t) **entry)
{
    const uint64_t offset = (uintptr_t)p - (uintptr_t)hak_map.window;
    const uint64_t unit = offset >> HAK_UNIT_LOG2 | offset << (64 - HAK_UNIT_LOG2);
    if (HAK_UNLIKELY(unit >= hak_load_relaxed(&hak_map.covered_units))) {
        return false;
    }
    *entry = &hak_map.units[unit];
    return true;
}

// Does everything of ours lie in the window?
HAK_INLINE bool hak_map_has_window_only(void)
{
    return hak_load_relaxed(&hak_map.covered_units) != 0;
}

// Does the entry say: in a slab?
HAK_INLINE bool hak_map_is_small(uint32_t entry)
{
    return HAK_MAP_TAG(entry) != 0 && HAK_MAP_CLASS(entry) < HAK_SMALL_CLASSES;
}

// Does the entry say: in a slab with sampled blocks?
HAK_INLINE bool hak_map_is_sampled(uint32_t entry)
{
    return (entry & HAK_MAP_SAMPLED) != 0 && hak_map_is_small(entry);
}

// Does the entry say: the start of a large block in use?
HAK_INLINE bool hak_map_is_large(uint32_t entry)
{
    return entry - HAK_MAP_LARGE(HAK_LARGE_NO_BIN) <= HAK_LARGE_BINS;
}

// Set the entry of the unit that `p` lies in.
HAK_INLINE void hak_map_set_one(const void *p, uint32_t entry)
{
    hak_store_relaxed(hak_map_place(p), entry);
}

// Set the entries of `count` units from `start`, which lie in one superslab.
HAK_INTERNAL void hak_map_set(const void *start, unsigned count, uint32_t entry);

// The superslab (or large block with a mapping of its own) that `p` may lie in; the caller compares the whole address.
// NULL: none, or, outside our window, such a block beyond its first HAK_SUPER_BYTES.
HAK_INLINE struct hak_super *hak_map_super(const void *p)
{
    // pairs with: slots_publish
    return hak_load_acquire(&hak_map.supers[((uintptr_t)p >> HAK_SUPER_LOG2) & hak_map.super_mask]);
}

// Slots in which addresses are in use: a mapping in our window uses all that it covers, one outside that of its start.
HAK_INTERNAL void hak_map_use(const char *start, size_t bytes);
HAK_INTERNAL void hak_map_forget(const char *start, size_t bytes);
// Keep those of a published mapping that grows or shrinks in place, and no others. False when they are not free.
HAK_INTERNAL bool hak_map_resize(const char *start, size_t old_bytes, size_t bytes);
// The first slot at or after that one that is free, and the first of `count` in a row, from next_slot on and around.
// The number of slots if there is none.
HAK_INTERNAL uint64_t hak_map_find_slot(uint64_t slot);
HAK_INTERNAL uint64_t hak_map_find_row(uint64_t count);
HAK_INLINE uint64_t hak_map_slot_count(void)
{
    return hak_map.super_mask + 1;
}
// So many does a mapping in our window take.
HAK_INLINE uint64_t hak_map_slots_of(size_t bytes)
{
    return (bytes + HAK_SUPER_BYTES - 1) >> HAK_SUPER_LOG2;
}
// Make the entries of a mapping writable. False without memory.
HAK_INTERNAL bool hak_map_commit(const char *start, size_t bytes);

// The slot of an address in our window; UINT64_MAX for one outside.
HAK_INTERNAL uint64_t hak_map_slot(const void *start);
// The slot of any address of ours, and the superslab in a slot.
HAK_INLINE uint64_t hak_map_slot_of(const void *start)
{
    return ((uintptr_t)start >> HAK_SUPER_LOG2) & hak_map.super_mask;
}
HAK_INTERNAL struct hak_super *hak_map_in_slot(uint64_t slot);

// Make `super` known in all slots that a mapping keeps, or NULL to forget it.
HAK_INTERNAL void hak_map_publish(const char *start, size_t bytes, struct hak_super *super);
