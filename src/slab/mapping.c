// mapping.c -- see mapping.h.
#include "slab/mapping.h"

#include "base/bits.h"
#include "meta/addresses.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "meta/unreleased.h"
#include "os/os.h"
#include "os/refusal.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/huge_pages.h"
#include "slab/outside.h"
#include "slab/under_way.h"

struct hak_super *hak_mapping_super(struct hak_run *mapping)
{
    return (struct hak_super *)(void *)((char *)mapping - offsetof(struct hak_super, slabs));
}

_Static_assert(sizeof(struct hak_super) + sizeof(struct hak_run) <= 512, "as the pool has it");

static struct hak_super *descriptor_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *super = hak_arena.spare_mappings;
    if (super != NULL) {
        hak_arena.spare_mappings = (struct hak_super *)(void *)super->base;
        return super;
    }
    return hak_pool_take(sizeof *super + sizeof super->slabs[0]);
}

static void spare_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    super->base = (char *)hak_arena.spare_mappings;
    hak_arena.spare_mappings = super;
}

// The range has ended: its descriptor is free again.
static void unreleased_ended(struct hak_unreleased_range *range)
{
    hak_lock_is_held(&hak_arena.lock);
    spare_locked(HAK_LIST_ITEM(range, struct hak_super, unreleased));
}

// How many places outside the window are tried, each with another slot.
enum { ALIGNED_TRIES = 8 };

// Map extra room for an alignment beyond superslab size, and give the ends back. Outside the window, the map knows a mapping by the
// slot of its start, and the ends have none.
static char *map_aligned_locked(size_t bytes, size_t alignment) HAK_REQUIRES(&hak_arena.lock)
{
    if (alignment <= HAK_SUPER_BYTES) {
        return hak_addresses_take(bytes, NULL);
    }
    const size_t own = hak_align_up(bytes, HAK_SUPER_BYTES);
    for (unsigned tries = 0; tries < ALIGNED_TRIES; tries++) {
        char *start = hak_addresses_take(own + alignment, NULL);
        if (start == NULL) {
            return NULL;
        }
        char *aligned = (char *)hak_align_up((uintptr_t)start, alignment);
        const size_t before = (size_t)(aligned - start);
        const bool is_inside = hak_map_slot(start) != UINT64_MAX;
        if (is_inside || before == 0 ||
            (hak_map_commit(aligned, own) && hak_map_try_use(aligned, own))) {
            hak_addresses_drop(start, before);
            hak_unreleased_drop(aligned + own, alignment - before, is_inside, true);
            hak_unreleased_drop(aligned + bytes, own - bytes, false, true);
            return aligned;
        }
        hak_addresses_drop(start, own + alignment);
    }
    return NULL;
}

static void publish_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    hak_map_publish(super->base, super->mapped_bytes, super);
    if (hak_map_slot(super->base) == UINT64_MAX) {
        hak_outside_add_locked(super);
    }
}

static void hide_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    hak_map_set_one(super->base, HAK_MAP_NOTHING);
    hak_map_publish(super->base, super->mapped_bytes, NULL);
    if (hak_map_slot(super->base) == UINT64_MAX) {
        hak_outside_remove_locked(super);
    }
}

// Take addresses for a mapping and, outside the window, room to list it; or NULL.
static char *take_locked(size_t bytes, size_t alignment) HAK_REQUIRES(&hak_arena.lock)
{
    char *start = map_aligned_locked(bytes, alignment);
    if (start != NULL && hak_map_slot(start) == UINT64_MAX && !hak_outside_reserve_locked()) {
        hak_addresses_drop(start, bytes);
        return NULL;
    }
    if (start != NULL) {
        hak_addresses_leave_room(start, bytes);
    }
    return start;
}

static struct hak_run *make(size_t bytes, size_t alignment)
{
    hak_lock_take(&hak_arena.lock);
    const bool may = hak_arena_has_room(bytes) && hak_hook_may_map_locked(bytes) &&
                     hak_hook_may_use_locked(bytes);
    struct hak_super *super = may ? descriptor_locked() : NULL;
    char *start = super != NULL ? take_locked(bytes, alignment) : NULL;
    if (start == NULL) {
        if (super != NULL) {
            spare_locked(super);
        }
        hak_lock_drop(&hak_arena.lock);
        return NULL;
    }
    hak_arena_read_clock();
    super->base = start;
    super->mapped_bytes = bytes;
    super->mapped_at = hak_load_relaxed(&hak_arena.clock);
    super->made_at[0] = super->mapped_at;
    super->is_mapping = true;
    super->huge_units = 0;
    hak_store_relaxed(&super->shard, HAK_NO_SHARD);
    hak_list_append(&hak_arena.all, &super->all_link);
    hak_count(&hak_arena.mapping_bytes, bytes);
    hak_arena_note_peak_locked();
    struct hak_run *mapping = &super->slabs[0];
    mapping->base = start;
    mapping->bytes = bytes;
    mapping->units = 0;
    mapping->zeroed = true;
    mapping->is_ruled_huge = false;
    mapping->state = HAK_RUN_LARGE;
    hak_list_start(&mapping->link);
    publish_locked(super);
    hak_lock_drop(&hak_arena.lock);
    return mapping;
}

// All of it: the kernel does not move a mapping whose parts differ. No lock: only one thread makes or resizes a block.
static void want_huge(struct hak_run *mapping, bool wants_huge)
{
    struct hak_super *super = hak_mapping_super(mapping);
    hak_os_want_huge(super->base, super->mapped_bytes, wants_huge);
    super->huge_units = wants_huge ? ~UINT64_C(0) : 0;
}

struct hak_run *hak_mapping_make(size_t bytes, size_t alignment, bool wants_huge)
{
    struct hak_run *mapping = make(bytes, alignment);
    if (mapping != NULL && wants_huge) {
        want_huge(mapping, true);
        if (hak_huge_pages_are_dear(mapping->base)) {
            want_huge(mapping, false);
        }
    }
    return mapping;
}

bool hak_mapping_is_inset(struct hak_run *run)
{
    return run->units == 0 && run->base != hak_mapping_super(run)->base;
}

// Purge the bytes behind `from`, except `left` at most. Touched pages take the kernel up to 0.1 ms per mebibyte. So it goes in
// pieces: other threads that map or unmap wait for the kernel's lock. Pages locked in memory are refused; they go with the mapping.
static void purge(const struct hak_super *super, size_t from, size_t left)
{
    size_t end = super->mapped_bytes;
    while (end - from > left) {
        const size_t bytes = hak_least(HAK_MIB(16), end - from);
        end -= bytes;
        HAK_UNHEEDED(hak_os_purge(super->base + end, bytes));
    }
}

// From here on no lookup finds the block; its addresses stay ours. Returns the number of the load (under_way.h).
static uint64_t leave(struct hak_run *mapping)
{
    struct hak_super *super = hak_mapping_super(mapping);
    hak_lock_take(&hak_arena.lock);
    hide_locked(super);
    mapping->state = HAK_RUN_NONE;
    hak_list_remove(&super->all_link);
    if (HAK_UNLIKELY(hak_mapping_is_inset(mapping))) {
        hak_hook_inset_ends();
    }
    hak_arena.leaving_bytes += super->mapped_bytes;
    const uint64_t number = hak_under_way_begin_locked();
    hak_lock_drop(&hak_arena.lock);
    return number;
}

void hak_mapping_end(struct hak_run *mapping)
{
    struct hak_super *super = hak_mapping_super(mapping);
    purge(super, 0, HAK_MIB(16)); // the rest may take 2 ms
    const uint64_t number = leave(mapping);
    const bool is_gone = hak_os_unmap(super->base, super->mapped_bytes);
    hak_lock_take(&hak_arena.lock);
    hak_arena.leaving_bytes -= super->mapped_bytes;
    hak_count(&hak_arena.mapping_bytes, (size_t)0 - super->mapped_bytes);
    super->unreleased = (struct hak_unreleased_range){
        .has_slots = true, .is_clean = !hak_mapping_is_inset(mapping), .ended = unreleased_ended};
    hak_unreleased_note(super->base, super->mapped_bytes, &super->unreleased, is_gone);
    hak_under_way_end_locked(number);
    hak_lock_drop(&hak_arena.lock);
    hak_under_way_tell();
}

// Grow or shrink in place.
static bool resize_locked(struct hak_super *super, size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t old_bytes = super->mapped_bytes;
    if (!hak_map_resize(super->base, old_bytes, bytes)) {
        return false;
    }
    if (hak_os_remap(super->base, old_bytes, bytes, NULL) == NULL) {
        hak_map_resize(super->base, bytes, old_bytes);
        return false;
    }
    return true;
}

// Move the pages to a place with more room.
static bool move_locked(struct hak_super *super, size_t bytes) HAK_REQUIRES(&hak_arena.lock)
{
    char *old_start = super->base;
    const size_t old_bytes = super->mapped_bytes;
    char *start = take_locked(bytes, 1);
    if (start == NULL) {
        return false;
    }
    if (hak_os_remap(old_start, old_bytes, bytes, start) == NULL) {
        hak_unreleased_drop(start, bytes, true, false); // they may be unmapped already
        return false;
    }
    hak_hook_large_ends(&super->slabs[0]); // before another thread can get the address
    hide_locked(super);
    hak_map_forget(old_start, old_bytes);
    super->base = start;
    super->mapped_bytes = bytes;
    super->slabs[0].base = start;
    publish_locked(super);
    return true;
}

bool hak_mapping_may_grow_locked(size_t more) HAK_REQUIRES(&hak_arena.lock)
{
    const bool may = hak_arena_has_room(more) && hak_hook_may_use_locked(more);
    if (!may) {
        hak_refusal_note(HAK_REFUSED_TO_GROW, more);
    }
    return may;
}

bool hak_mapping_resize(struct hak_run *mapping, size_t bytes)
{
    struct hak_super *super = hak_mapping_super(mapping);
    const size_t old_bytes = super->mapped_bytes; // changed by this thread alone
    if (bytes < old_bytes) {
        purge(super, bytes, HAK_MIB(1)); // the rest is purged with the lock held
    }
    hak_lock_take(&hak_arena.lock);
    const bool is_allowed = bytes <= old_bytes || hak_mapping_may_grow_locked(bytes - old_bytes);
    const bool done = is_allowed && (resize_locked(super, bytes) ||
                                     (bytes > old_bytes && move_locked(super, bytes)));
    if (done) {
        hak_count(&hak_arena.mapping_bytes, bytes - old_bytes);
        hak_arena_note_peak_locked();
        super->mapped_bytes = bytes;
        mapping->bytes = bytes;
        mapping->zeroed = false;
    }
    hak_lock_drop(&hak_arena.lock);
    // Refused: it stays as long as it was, but what the program gave up has gone.
    if (bytes < old_bytes && !done) {
        mapping->zeroed = false;
        return true;
    }
    // A block that counted as dense may turn out sparse. Until then the new part is like the rest.
    if (done && bytes > old_bytes && !mapping->is_ruled_huge) {
        const bool wants_huge = hak_huge_pages_wanted(bytes, false);
        if (wants_huge || super->huge_units != 0) {
            want_huge(mapping, wants_huge);
        }
    }
    return done;
}
