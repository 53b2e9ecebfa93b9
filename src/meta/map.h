// map.h -- the map: one load tells what an address is.
//
// Owns      the table of units (64 KiB each) and the table of superslabs.
// Threads   read: any, without a lock. written: under the arena's lock (slots) or
//           by the owner of the slab (units).
// Fails     hak_map_start returns false when not even small tables can be had.
//
// Both tables are indexed by address bits with a mask, so that any 64-bit value leads to an entry:
// no bounds check, and a wild pointer reads "not ours". The mask is as wide as the largest table
// that the kernel gave us. Two ranges of addresses that share an entry are never used at the same
// time (map slots), so narrow tables cost nothing but address space. An entry is a hint until the
// superslab's descriptor (hak_map_super) or hak_map_covers confirms the whole address.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "meta/size_class.h"

struct hak_super;

// A unit's entry: the owner's tag (its id << 8) plus the size class. 0: not ours. The entry of a large block's
// first unit has no owner. Its class is the block's bin, counted on from the small classes: one of HAK_LARGE_BINS;
// or HAK_LARGE_NO_BIN, below them, if the block is too large for a bin, a heap's, or a sample. HAK_MAP_KEPT is
// added when the block is free and kept. Entries of a slab with sampled blocks contain HAK_MAP_SAMPLED: so no
// thread takes them for its own.
#define HAK_MAP_NOTHING    0U
#define HAK_MAP_KEPT       0x80000000U
#define HAK_MAP_SAMPLED    0x80000000U
#define HAK_MAP_LARGE(bin) (HAK_SMALL_CLASSES + (bin))
#define HAK_LARGE_NO_BIN   UINT32_MAX
#define HAK_MAP_CLASS(e)   ((e) & 0xFFU)
#define HAK_MAP_TAG(e)     ((e) & 0x7FFFFF00U)

// A fast path subtracts a tag from an entry: 256, the first owner's, or more, or up to HAK_SMALL_CLASSES more
// than a tag (hak_cache.hit_tag). The result must not look like a small class for a large block's entry.
_Static_assert(2 * HAK_SMALL_CLASSES + HAK_LARGE_BINS <= 256, "entries of large blocks");

// The start of the window under ThreadSanitizer and MemorySanitizer (map.c).
#define HAK_MAP_WINDOW_OF_SANITIZERS UINT64_C(0x7F0000000000)

// The most words of slots: a bit for each superslab of 1 TiB.
enum { HAK_MAP_WORDS = 4096 };

struct hak_map {
    _Atomic(uint32_t) *units;
    uint64_t unit_mask;
    _Atomic(struct hak_super *) *supers;
    uint64_t super_mask;
    _Atomic(uint64_t) covered_units; // all, or 0 once something of ours lies outside the window
    char *window;                    // range for superslabs, as long as the table covers
    uint64_t *slots;                 // a bit per slot, of superslab size: are its addresses in use?
    uint64_t next_slot;              // where the next search begins (next fit)
    uint64_t committed[64];          // a bit per part of `units` that is writable
    // A bit for each word of the slots that is not 0, and for each that is all ones.
    uint64_t used_words[HAK_MAP_WORDS / 64];
    uint64_t full_words[HAK_MAP_WORDS / 64];
    uint64_t missing_row; // there is no row of this many free slots
    uint64_t used_slots;
    uint64_t outside_at; // where, in superslabs, addresses.c next tries outside the window
    bool has_window;     // the kernel has mapped something in the window
};

HAK_INTERNAL extern struct hak_map hak_map;

// Set up the tables; called once before anything else. False when there is no memory at all.
HAK_INTERNAL bool hak_map_start(void);

HAK_INLINE _Atomic(uint32_t) *hak_map_place(const void *p)
{
    return &hak_map.units[((uintptr_t)p >> HAK_UNIT_LOG2) & hak_map.unit_mask];
}

HAK_INLINE uint32_t hak_map_entry(const void *p)
{
    return hak_load_relaxed(hak_map_place(p));
}

// Is the entry of `p` about `p`, not about another address that shares it? If this says no, ask the
// superslab's descriptor.
HAK_INLINE bool hak_map_covers(const void *p)
{
    const uint64_t unit = ((uintptr_t)p - (uintptr_t)hak_map.window) >> HAK_UNIT_LOG2;
    return unit < hak_load_relaxed(&hak_map.covered_units);
}

// Does a unit in our window begin at `p`? Then `entry` is that unit's, and no other address shares it. The
// rotation by 16 bits makes an address inside a unit larger than every count.
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

// Do all our superslabs and mappings lie in the window?
HAK_INLINE bool hak_map_has_window_only(void)
{
    return hak_load_relaxed(&hak_map.covered_units) != 0;
}

// Does the entry say that its unit is in a slab?
HAK_INLINE bool hak_map_is_small(uint32_t entry)
{
    return HAK_MAP_TAG(entry) != 0 && HAK_MAP_CLASS(entry) < HAK_SMALL_CLASSES;
}

// Does the entry say that its unit is in a slab with sampled blocks?
HAK_INLINE bool hak_map_is_sampled(uint32_t entry)
{
    return (entry & HAK_MAP_SAMPLED) != 0 && hak_map_is_small(entry);
}

// Does the entry say that a large block in use begins there?
HAK_INLINE bool hak_map_is_large(uint32_t entry)
{
    return entry - HAK_MAP_LARGE(HAK_LARGE_NO_BIN) <= HAK_LARGE_BINS;
}

// Set the entry of the unit that contains `p`.
HAK_INLINE void hak_map_set_one(const void *p, uint32_t entry)
{
    hak_store_relaxed(hak_map_place(p), entry);
}

// Set the entries of `count` units from `start`, which lie in one superslab.
HAK_INTERNAL void hak_map_set(const void *start, unsigned count, uint32_t entry);

// The superslab, or the large block's own mapping, that may contain `p`; the caller compares the whole address. NULL:
// none, or the part beyond the first HAK_SUPER_BYTES of such a mapping outside our window.
HAK_INLINE struct hak_super *hak_map_super(const void *p)
{
    // pairs with: slots_publish
    return hak_load_acquire(&hak_map.supers[((uintptr_t)p >> HAK_SUPER_LOG2) & hak_map.super_mask]);
}

// Mark slots used or free: all that a mapping in our window covers; for one outside, that of its start.
HAK_INTERNAL void hak_map_use(const char *start, size_t bytes);
HAK_INTERNAL void hak_map_forget(const char *start, size_t bytes);
// Mark them used if the first one is free. False: another mapping uses it.
HAK_INTERNAL bool hak_map_try_use(const char *start, size_t bytes);
// Update the slots of a published mapping that grows or shrinks in place. False if other mappings use the slots that it needs.
HAK_INTERNAL bool hak_map_resize(const char *start, size_t old_bytes, size_t bytes);
// The first free slot at or after `slot`; the first of `count` free slots in a row, from next_slot on and around.
// The number of slots if there is none.
HAK_INTERNAL uint64_t hak_map_find_slot(uint64_t slot);
HAK_INTERNAL uint64_t hak_map_find_row(uint64_t count);
HAK_INLINE uint64_t hak_map_slot_count(void)
{
    return hak_map.super_mask + 1;
}
// The number of slots that a mapping in our window uses.
HAK_INLINE uint64_t hak_map_slots_of(size_t bytes)
{
    return (bytes + HAK_SUPER_BYTES - 1) >> HAK_SUPER_LOG2;
}
// Make the entries of a mapping writable. False without memory.
HAK_INTERNAL bool hak_map_commit(const char *start, size_t bytes);

// The slot of an address in our window; UINT64_MAX for an address outside.
HAK_INTERNAL uint64_t hak_map_slot(const void *start);
// The slot of any address of ours, and the superslab in a slot.
HAK_INLINE uint64_t hak_map_slot_of(const void *start)
{
    return ((uintptr_t)start >> HAK_SUPER_LOG2) & hak_map.super_mask;
}
HAK_INTERNAL struct hak_super *hak_map_in_slot(uint64_t slot);

// Publish `super` in all slots that a mapping uses, or NULL to forget it.
HAK_INTERNAL void hak_map_publish(const char *start, size_t bytes, struct hak_super *super);
