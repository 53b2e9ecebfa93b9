// arena.c -- see arena.h. The sums and the superslabs here; where a run is put in find.c; runs of units in runs.c;
// mappings of their own in lone.c; giving pages back in purge.c.
#include "slab/arena.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "meta/addresses.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"
#include "os/pressure.h"
#include "slab/arena_locked.h"
#include "slab/defaults.h"
#include "slab/gaps.h"
#include "slab/harden.h"
#include "slab/huge_pages.h"

struct hak_arena hak_arena;

// With two processors a lock of the arena's is seldom waited for, and superslabs that threads share are fuller.
enum { PROCESSORS_OF_ONE_SHARD = 2 };

static unsigned shards_wanted(void)
{
    const size_t option = hak_load_relaxed(&hak_options.arena_shards);
    const unsigned processors = hak_os_processors();
    const size_t wanted = option != 0                            ? option
                          : processors > PROCESSORS_OF_ONE_SHARD ? processors
                                                                 : 1;
    unsigned count = 1;
    while (count < wanted && count < HAK_SHARDS_MAX) {
        count *= 2;
    }
    return count;
}

// What a shard may keep to itself of what the sums should say, and all together: half of a sixteenth of the memory.
#define UNTOLD_MOST HAK_MIB(32)

void hak_arena_start(void)
{
    const unsigned shards = shards_wanted();
    hak_list_start(&hak_arena.all);
    for (unsigned i = 0; i < shards; i++) {
        hak_arena.shards[i].number = (uint8_t)i;
        hak_queues_start(&hak_arena.shards[i]);
    }
    hak_arena.shard_mask = shards - 1;
}

// What the sums do not know yet is added: a limit is a limit.
bool hak_arena_has_room(size_t bytes)
{
    if (!hak_arena_is_limited()) {
        return true;
    }
    const size_t limit = hak_load_relaxed(&hak_options.limit_hard);
    size_t heap = hak_arena_heap_bytes();
    for (unsigned i = 0; hak_arena.shard_mask != 0 && i <= hak_arena.shard_mask; i++) {
        const struct hak_untold *untold = &hak_arena.shards[i].untold;
        heap += hak_load_relaxed(&untold->dirty_bytes) - hak_load_relaxed(&untold->free_bytes);
    }
    return limit == 0 || (heap <= limit && bytes <= limit - heap);
}

static void tell(_Atomic(size_t) *untold, _Atomic(size_t) *sum)
{
    hak_add_relaxed(sum, hak_load_relaxed(untold));
    hak_store_relaxed(untold, 0);
}

static void shard_tell_locked(struct hak_shard *shard) HAK_REQUIRES(&shard->lock)
{
    struct hak_untold *untold = &shard->untold;
    tell(&untold->dirty_bytes, &hak_arena.dirty_bytes);
    for (unsigned group = 0; group < HAK_ARMS; group++) {
        tell(&untold->waiting_bytes[group], &hak_arena.waiting_bytes[group]);
    }
    tell(&untold->tail_bytes, &hak_arena.tail_bytes);
    tell(&untold->free_bytes, &hak_arena.free_bytes);
    tell(&untold->slab_bytes, &hak_arena.slab_bytes);
    tell(&untold->retaken_bytes, &hak_arena.retaken_bytes);
}

void hak_arena_tell_all(void)
{
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        hak_lock_is_held(&hak_arena.shards[i].lock);
        shard_tell_locked(&hak_arena.shards[i]);
    }
}

static size_t untold_most(void)
{
    const bool is_limited = hak_load_relaxed(&hak_options.limit_soft) != 0;
    const size_t part = hak_load_relaxed(&hak_arena.part_bytes) / (2 * (hak_arena.shard_mask + 1));
    return is_limited ? 0 : hak_least(part, UNTOLD_MOST);
}

// Who has a shard's lock after us knows what we have said; who had it before has told us.
void hak_arena_tell(bool may_be_late)
{
    if (hak_arena.shard_mask == 0) {
        return;
    }
    hak_store_relaxed(&hak_arena.untold_most, may_be_late ? untold_most() : 0);
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        struct hak_shard *shard = &hak_arena.shards[i];
        hak_lock_take(&shard->lock);
        shard_tell_locked(shard);
        hak_lock_drop(&shard->lock);
    }
}

void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t mapped =
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.lone_bytes);
    if (mapped > hak_load_relaxed(&hak_arena.peak_bytes)) {
        hak_store_relaxed(&hak_arena.peak_bytes, mapped);
    }
}

void hak_arena_forget_peak(void)
{
    hak_store_relaxed(&hak_arena.peak_before, hak_load_relaxed(&hak_arena.used_peak));
    hak_store_relaxed(&hak_arena.used_peak, hak_arena_used_bytes());
}

static struct hak_super *super_descriptor_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *super = hak_arena.spare_supers;
    if (super != NULL) {
        hak_arena.spare_supers = (struct hak_super *)(void *)super->base;
        return super;
    }
    return hak_pool_take(sizeof *super + HAK_SUPER_UNITS * sizeof super->slabs[0] +
                         sizeof(struct hak_super_place));
}

// Map `count` superslabs. NULL when not all could be had.
static char *arena_map_locked(size_t count, bool wants_huge) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t bytes = count << HAK_SUPER_LOG2;
    if (hak_load_relaxed(&hak_arena.super_bytes) + bytes > HAK_SUPER_BYTES) {
        hak_defaults_fit_locked();
    }
    if (!hak_pressure_allows(bytes)) {
        return NULL;
    }
    char *base = hak_addresses_take(bytes);
    if (base == NULL) {
        return NULL;
    }
    if (hak_harden_has_tags() && !hak_tags_map(base, bytes)) {
        hak_addresses_drop(base, bytes);
        return NULL;
    }
    if (count > 1 && hak_map_slot(base) == UINT64_MAX) {
        hak_addresses_drop(base,
                           bytes); // outside our window only one at a time is known by its start
        return NULL;
    }
    if (wants_huge || hak_load_relaxed(&hak_arena.huge_pages) == HAK_HUGE_ALWAYS) {
        hak_os_want_huge(base, bytes, wants_huge);
    }
    hak_arena_read_clock();
    return base;
}

// A descriptor for the superslab at `base`, which everybody knows then. False without memory.
static bool arena_add_locked(struct hak_shard *shard, char *base, bool is_huge)
    HAK_REQUIRES(&shard->lock, &hak_arena.lock)
{
    struct hak_super *super = super_descriptor_locked();
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
    hak_store_relaxed(&super->span, NULL);
    super->is_huge = is_huge;
    super->is_huge_new = is_huge;
    hak_list_append(&hak_arena.all, &super->all_link);
    hak_queues_add_locked(super);
    hak_count(&hak_arena.super_bytes, HAK_SUPER_BYTES);
    HAK_SHARD_COUNT(shard, free_bytes, HAK_SUPER_BYTES);
    hak_store_relaxed(&super->shard, shard->number);
    hak_map_publish(base, HAK_SUPER_BYTES, super);
    hak_arena_note_units_locked(shard, super);
    return true;
}

uint64_t hak_shard_grow_locked(struct hak_shard *shard, unsigned units)
    HAK_REQUIRES(&shard->lock, &hak_arena.lock)
{
    const size_t count = (units + HAK_SUPER_UNITS - 1) / HAK_SUPER_UNITS;
    const bool wants_huge = hak_huge_wanted_locked(units * HAK_UNIT_BYTES);
    char *base = arena_map_locked(count, wants_huge);
    for (size_t i = 0; base != NULL && i < count; i++) {
        if (!arena_add_locked(shard, base + i * HAK_SUPER_BYTES, wants_huge)) {
            hak_addresses_drop(base + i * HAK_SUPER_BYTES, (count - i) * HAK_SUPER_BYTES);
            base = NULL;
        }
    }
    hak_arena_note_peak_locked();
    return base != NULL ? hak_map_slot_of(base) : UINT64_MAX;
}
