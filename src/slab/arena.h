// arena.h -- superslabs, and the runs of units in them.
//
// Layer     slab (may include: base, os, meta)
// Owns      every superslab, every mapping of a large block's own, which units are
//           free and which of those have resident pages ("dirty").
// Threads   any; one lock, rank "arena". Taken per slab or large block, not per block.
// Fails     NULL when the kernel refuses; what was free before is still free.
#ifndef HAK_SLAB_ARENA_H
#define HAK_SLAB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/slab.h"

// A superslab, or a large block's own mapping (then with one descriptor and no units).
struct hak_super {
    char *base;
    size_t mapped_bytes;    // HAK_SUPER_BYTES, or those of the mapping
    uint64_t free_units;    // a bit per unit that no run has       (arena lock)
    uint64_t dirty_units;   // those of free_units that may be resident (arena lock)
    uint64_t written_units; // units that do not read as zero; with huge pages fewer than the
                            // resident ones                           (arena lock)
    uint64_t purging_units; // units taken out by a purge that is under way (arena lock)
    struct hak_list link;   // in the arena's list for its longest free run; lone: of those outside
    struct hak_list all_link; // in the arena's list of everything
    uint64_t dirty_tick;      // when a unit last became dirty
    _Atomic(struct hak_super *)
        span;                       // the superslab in which the run begins that this one continues
    bool is_lone;                   // a large block's own mapping
    bool is_huge;                   // asked for huge pages: one touch makes 32 units resident
    uint8_t first[HAK_SUPER_UNITS]; // the first unit of the run that a unit is in
    uint8_t touched_kib[HAK_SUPER_UNITS]; // how much of a free unit may be resident (arena lock)
    struct hak_slab slabs[];              // by unit; one for a mapping of its own
};

struct hak_arena {
    struct hak_lock lock;
    struct hak_list by_run[7];      // superslabs by log2 of their longest free run
    struct hak_list all;            // superslabs and lone mappings
    struct hak_list outside;        // lone mappings that the map knows the start of only
    struct hak_super *spare_supers; // descriptors to use again, linked by `base`
    struct hak_super *spare_lones;
    _Atomic(size_t) super_bytes;    // of superslabs mapped
    _Atomic(size_t) lone_bytes;     // of lone mappings
    _Atomic(size_t) dirty_bytes;    // of free units that may be resident
    _Atomic(size_t) free_bytes;     // of free units
    _Atomic(size_t) clean_bytes;    // of untouched units handed out, ever
    _Atomic(uint64_t) tick;         // the purger's clock
    enum hak_huge_pages huge_pages; // the kernel's setting, read with the first superslab
};

HAK_INTERNAL extern struct hak_arena hak_arena;

HAK_INTERNAL void hak_arena_start(void);

// A run of `units` (1..HAK_RUN_UNITS_MAX; above 64 it goes on in the superslabs that follow),
// aligned to `align_units` (a power of two, at most 64), state NONE.
// `zeroed` in the descriptor says whether its pages are untouched.
HAK_INTERNAL struct hak_slab *hak_arena_take(unsigned units, unsigned align_units);
// `bytes`: its user had no more than these, from the start.
HAK_INTERNAL void hak_arena_give(struct hak_slab *run, size_t bytes);
// Up to where the run may be resident already, for the part of it that lies in its last unit.
HAK_INTERNAL size_t hak_arena_touched_tail(const struct hak_slab *run);
// Make a run longer (or shorter) where it lies. False when the units behind it are in use.
HAK_INTERNAL bool hak_arena_resize(struct hak_slab *run, unsigned units);

// A mapping of its own for one block, aligned to `alignment` (at most superslab size is free of
// cost). `bytes` is a multiple of the page size.
HAK_INTERNAL struct hak_slab *hak_arena_map(size_t bytes, size_t alignment);
HAK_INTERNAL void hak_arena_unmap(struct hak_slab *lone);
// The mapping of its own that `p` lies in where the map does not know it, or NULL. Takes the lock.
HAK_INTERNAL struct hak_super *hak_arena_find_outside(const void *p);
// Grow or shrink it, moving its pages (not their content) if need be: lone->base may change.
// False: nothing changed.
HAK_INTERNAL bool hak_arena_remap(struct hak_slab *lone, size_t bytes);

// How many ticks ago the last free of a superslab must be.
struct hak_purge_age {
    uint64_t whole; // for free units that are no part of a huge page in use
    uint64_t part;  // for those that are
};

// Give back dirty pages of that age, those that have waited longest first, until `limit` bytes are
// reached. Returns the bytes given back.
HAK_INTERNAL size_t hak_arena_purge(struct hak_purge_age age, size_t limit);
// After fork, in the child: purges that were under way in the parent are not here.
HAK_INTERNAL void hak_arena_forked_locked(void);
// Unmap superslabs that are wholly free. Returns the bytes unmapped.
HAK_INTERNAL size_t hak_arena_trim(void);

#endif
