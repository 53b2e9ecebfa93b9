// superslabs.c -- see superslabs.h.
#include "slab/superslabs.h"

#include "base/check.h"
#include "meta/addresses.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "meta/unreleased.h"
#include "os/os.h"
#include "slab/defaults.h"
#include "slab/hooks.h"
#include "slab/queues.h"

// One unused descriptor keeps the addresses of others, behind the part that describes a superslab; the others' pages are
// purged. A thread that still reads them sees zeros: no unit is in a run.
struct spares {
    struct hak_super *next; // the next one that keeps addresses
    size_t count;
    struct hak_super *others[400];
};
enum {
    SPARES_AT = sizeof(struct hak_super) + HAK_SUPER_UNITS * sizeof(struct hak_run) +
                sizeof(struct hak_super_place),
    DESCRIPTOR_BYTES = SPARES_AT + sizeof(struct spares),
};
_Static_assert(DESCRIPTOR_BYTES <= HAK_KIB(8), "as the pool has it without them");

static struct spares *spares_of(struct hak_super *super)
{
    return (struct spares *)(void *)((char *)super + SPARES_AT);
}

static struct hak_super *super_descriptor(void)
{
    hak_lock_take(&hak_arena.lock);
    struct hak_super *super = hak_arena.spare_supers;
    struct spares *spares = super != NULL ? spares_of(super) : NULL;
    if (spares != NULL && spares->count > 0) {
        super = spares->others[--spares->count];
    } else if (spares != NULL) {
        hak_arena.spare_supers = spares->next;
    }
    hak_lock_drop(&hak_arena.lock);
    return super != NULL ? super : hak_pool_take(DESCRIPTOR_BYTES);
}

static void super_spare_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *first = hak_arena.spare_supers;
    struct spares *spares = first != NULL ? spares_of(first) : NULL;
    if (spares != NULL && spares->count < sizeof spares->others / sizeof spares->others[0]) {
        hak_pool_purge(super, DESCRIPTOR_BYTES, 0);
        spares->others[spares->count++] = super;
    } else {
        spares_of(super)->next = first;
        spares_of(super)->count = 0;
        hak_arena.spare_supers = super;
    }
}

// Take addresses for superslabs. The kernel maps them while the arena's lock is free: mapping takes longer than all the rest,
// and many threads may grow at the same time.
static char *super_map(size_t bytes)
{
    hak_lock_take(&hak_arena.lock);
    if (hak_load_relaxed(&hak_arena.super_bytes) + bytes > HAK_SUPER_BYTES) {
        hak_defaults_fit_locked();
    }
    char *base = hak_hook_may_map_locked(bytes) ? hak_addresses_take(bytes, &hak_arena.lock) : NULL;
    hak_lock_drop(&hak_arena.lock);
    return base;
}

static void super_drop(char *base, size_t bytes)
{
    hak_lock_take(&hak_arena.lock);
    hak_addresses_drop(base, bytes);
    hak_lock_drop(&hak_arena.lock);
}

// Outside our window the map knows only the start of a mapping, so it can be one superslab only.
static bool can_be_supers(char *base, size_t bytes)
{
    return (bytes == HAK_SUPER_BYTES || hak_map_slot(base) != UINT64_MAX) &&
           hak_hook_superslabs(base, bytes);
}

// Make and publish a descriptor for the superslab at `base`. False without memory.
static bool super_add_locked(struct hak_shard *shard, char *base, bool is_huge)
    HAK_REQUIRES(&shard->lock)
{
    struct hak_super *super =
        hak_gaps_reserve(&shard->gaps, hak_map_slot_of(base)) ? super_descriptor() : NULL;
    if (super == NULL) {
        return false;
    }
    super->base = base;
    super->mapped_bytes = HAK_SUPER_BYTES;
    super->mapped_at = hak_load_relaxed(&hak_arena.clock);
    super->free_units = ~UINT64_C(0);
    super->dirty_units = 0;
    super->written_units = 0;
    super->purging_units = 0;
    super->purged_units = 0;
    hak_super_place(super)->holed_units = 0;
    hak_store_relaxed(&super->span, NULL);
    super->huge_units = is_huge ? ~UINT64_C(0) : 0;
    super->huge_new_units = super->huge_units;
    super->settled_units = 0;
    hak_super_place(super)->collapsing_units = 0;
    hak_super_place(super)->refilled_units = 0;
    hak_queues_add_locked(super);
    hak_store_relaxed(&super->shard, shard->number);
    hak_lock_take(&hak_arena.lock);
    hak_list_append(&hak_arena.all, &super->all_link);
    hak_count(&hak_arena.super_bytes, HAK_SUPER_BYTES);
    HAK_ARENA_COUNT(shard, free_bytes, HAK_SUPER_BYTES);
    hak_map_publish(base, HAK_SUPER_BYTES, super);
    hak_lock_drop(&hak_arena.lock);
    hak_queues_note_units_locked(shard, super);
    return true;
}

// Learn from the result of growing by `count` superslabs how many the kernel allows.
static void note_most(size_t count, bool is_grown)
{
    hak_lock_take(&hak_arena.lock);
    const size_t bytes = hak_load_relaxed(&hak_arena.super_bytes);
    const size_t most = hak_load_relaxed(&hak_arena.most_bytes);
    if (!is_grown) {
        hak_store_relaxed(&hak_arena.most_bytes,
                          hak_least(most, bytes + (count - 1) * HAK_SUPER_BYTES));
    } else if (bytes > most) {
        hak_store_relaxed(&hak_arena.most_bytes, SIZE_MAX);
    }
    hak_arena_note_peak_locked();
    hak_lock_drop(&hak_arena.lock);
}

uint64_t hak_superslabs_grow_locked(struct hak_shard *shard, unsigned units, bool wants_huge)
    HAK_REQUIRES(&shard->lock)
{
    const size_t count = (units + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
    const size_t bytes = count << HAK_SUPER_LOG2;
    char *base = super_map(bytes);
    if (base != NULL && !can_be_supers(base, bytes)) {
        super_drop(base, bytes);
        base = NULL;
    }
    if (base !=
        NULL) { // the system may give larger pages unasked, huge ones or of one of the smaller sizes
        hak_os_want_huge(base, bytes, wants_huge);
    }
    hak_arena_read_clock();
    for (size_t i = 0; base != NULL && i < count; i++) {
        if (!super_add_locked(shard, base + i * HAK_SUPER_BYTES, wants_huge)) {
            super_drop(base + i * HAK_SUPER_BYTES, (count - i) * HAK_SUPER_BYTES);
            base = NULL;
        }
    }
    note_most(count, base != NULL);
    return base != NULL ? hak_map_slot_of(base) : UINT64_MAX;
}

uint64_t hak_superslabs_next_slot(void)
{
    hak_lock_take(&hak_arena.lock);
    const uint64_t slot = hak_map.next_slot;
    hak_lock_drop(&hak_arena.lock);
    return slot;
}

// Its dirty units count as of now, since it is about to be used.
static void super_move_locked(struct hak_shard *from, struct hak_shard *to, struct hak_super *super)
    HAK_REQUIRES(&from->lock, &to->lock)
{
    const uint64_t dirty = super->dirty_units;
    const size_t bytes = hak_super_touched_bytes(super, dirty);
    super->free_units = 0;
    super->dirty_units = 0;
    hak_queues_note_units_locked(from, super);
    hak_arena_note_return(from);
    hak_arena_count_dirty(from, super, (size_t)0 - bytes);
    HAK_ARENA_COUNT(from, free_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_store_relaxed(&super->shard, to->number);
    super->free_units = ~UINT64_C(0);
    super->dirty_units = dirty;
    hak_arena_count_dirty(to, super, bytes);
    HAK_ARENA_COUNT(to, free_bytes, HAK_SUPER_BYTES);
    hak_queues_note_dirty_locked(super);
    hak_queues_note_units_locked(to, super);
}

// Unproven: which lock it is.
bool hak_superslabs_adopt_locked(struct hak_shard *shard) HAK_REQUIRES(&shard->lock) HAK_UNPROVEN
{
    bool is_done = false;
    for (unsigned i = 1; i <= hak_arena.shard_mask && !is_done; i++) {
        struct hak_shard *other = &hak_arena.shards[(shard->number + i) & hak_arena.shard_mask];
        if (hak_load_relaxed(&other->whole_count) == 0 || !hak_lock_try(&other->lock)) {
            continue;
        }
        if (!hak_list_is_empty(&other->whole)) {
            struct hak_super *super = HAK_SUPER_OF_LINK(other->whole.next, whole_link);
            is_done = hak_gaps_reserve(&shard->gaps, hak_map_slot_of(super->base));
            if (is_done) {
                super_move_locked(other, shard, super);
            }
        }
        hak_lock_drop(&other->lock);
    }
    return is_done;
}

// False if the kernel refuses, or another thread collapses a part of it, which could hit what the program maps there next: then the
// superslab goes to the end of the list.
static bool super_unmap_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock, &hak_arena.lock)
{
    const size_t dirty = hak_super_touched_bytes(super, super->dirty_units);
    const bool may = hak_super_place(super)->collapsing_units == 0;
    hak_map_publish(super->base, HAK_SUPER_BYTES, NULL);
    if (!may || !hak_addresses_give(super->base, HAK_SUPER_BYTES)) {
        hak_map_publish(super->base, HAK_SUPER_BYTES, super);
        hak_list_remove(&hak_super_place(super)->whole_link);
        hak_list_append(&shard->whole, &hak_super_place(super)->whole_link);
        return false;
    }
    hak_arena_count_dirty(shard, super, (size_t)0 - dirty);
    HAK_ARENA_COUNT(shard, free_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_count(&hak_arena.super_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_list_remove(&super->all_link);
    super->free_units = 0;
    super->dirty_units = 0;
    hak_queues_note_units_locked(shard, super);
    hak_arena_note_return(shard);
    hak_store_relaxed(&super->shard, HAK_NO_SHARD);
    super_spare_locked(super);
    return true;
}

static size_t shard_trim(struct hak_shard *shard)
{
    size_t gone = 0;
    hak_lock_take(&shard->lock);
    for (size_t tries = hak_load_relaxed(&shard->whole_count);
         tries > 0 && !hak_list_is_empty(&shard->whole);
         tries--) {
        struct hak_super *super = HAK_SUPER_OF_LINK(shard->whole.next, whole_link);
        HAK_LOOK();
        hak_lock_take(&hak_arena.lock);
        gone += super_unmap_locked(shard, super) ? HAK_SUPER_BYTES : 0;
        hak_lock_drop(&hak_arena.lock);
        hak_lock_pass(&shard->lock);
    }
    hak_lock_drop(&shard->lock);
    return gone;
}

// The locks are dropped after each superslab: other threads may wait for them.
size_t hak_superslabs_trim(void)
{
    size_t gone = 0;
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        gone += shard_trim(&hak_arena.shards[i]);
    }
    hak_lock_take(&hak_arena.lock);
    for (size_t tries = hak_unreleased.count; tries > 0 && hak_unreleased.count > 0; tries--) {
        gone += hak_unreleased_retry(1);
        hak_lock_pass(&hak_arena.lock);
    }
    hak_lock_drop(&hak_arena.lock);
    return gone;
}
