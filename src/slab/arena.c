// arena.c -- see arena.h.
#include "slab/arena.h"

#include "base/bits.h"
#include "base/options.h"
#include "os/os.h"

struct hak_arena hak_arena;

// With two processors, threads seldom wait for the arena's lock, and shared superslabs are fuller.
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

// Unproven: the result says which lock it is.
struct hak_shard *hak_arena_try_shard_of(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock) HAK_UNPROVEN
{
    struct hak_shard *shard = hak_arena_shard_of(super);
    if (shard == NULL || !hak_lock_try(&shard->lock)) {
        return NULL;
    }
    if (hak_arena_shard_of(super) != shard) {
        hak_lock_drop(&shard->lock);
        return NULL;
    }
    return shard;
}

// The most that all shards together may withhold from a sum: half of a sixteenth of the memory, and at most this per shard.
#define UNTOLD_MOST HAK_MIB(64)

static void shard_start(struct hak_shard *shard)
{
    hak_list_start(&shard->whole);
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        for (unsigned queue = 0; queue < HAK_DIRTY_QUEUES; queue++) {
            hak_list_start(&shard->dirty[group][queue]);
        }
    }
}

void hak_arena_start(void)
{
    const unsigned shards = shards_wanted();
    hak_list_start(&hak_arena.all);
    for (unsigned i = 0; i < shards; i++) {
        hak_arena.shards[i].number = (uint8_t)i;
        shard_start(&hak_arena.shards[i]);
    }
    hak_arena.shard_mask = shards - 1;
    hak_store_relaxed(&hak_arena.most_bytes, SIZE_MAX);
    hak_store_release(&hak_arena.is_started, true); // pairs with: hak_arena_is_started
}

// Adds what the sums do not contain yet: the limit is exact.
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

bool hak_arena_has_units(unsigned units)
{
    size_t unused = hak_load_relaxed(&hak_arena.free_bytes);
    for (unsigned i = 0; hak_arena.shard_mask != 0 && i <= hak_arena.shard_mask; i++) {
        unused += hak_load_relaxed(&hak_arena.shards[i].untold.free_bytes);
    }
    const size_t bytes = units * HAK_UNIT_BYTES;
    return unused >= bytes && hak_arena_has_room(bytes);
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
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        tell(&untold->waiting_bytes[group], &hak_arena.waiting_bytes[group]);
    }
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

static bool is_any_under_way_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    bool is_any = false;
    for (unsigned i = 0; i < HAK_UNDER_WAY; i++) {
        is_any |= hak_arena.under_way[i].number != 0;
    }
    return is_any;
}

// Unproven: locks in a loop.
bool hak_arena_has_room_soon(size_t bytes) HAK_UNPROVEN
{
    if (!hak_arena_is_limited()) {
        return false;
    }
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        hak_lock_take(&hak_arena.shards[i].lock);
    }
    hak_arena_tell_all();
    hak_lock_take(&hak_arena.lock);
    const size_t limit = hak_load_relaxed(&hak_options.limit_hard);
    const bool goes = !hak_load_relaxed(&hak_arena.is_locked);
    const size_t stays =
        hak_arena_heap_bytes() - (goes ? hak_load_relaxed(&hak_arena.dirty_bytes) : 0);
    const bool has_room = bytes <= limit && (stays <= limit - bytes || is_any_under_way_locked());
    hak_lock_drop(&hak_arena.lock);
    for (unsigned i = hak_arena.shard_mask + 1; i > 0; i--) {
        hak_lock_drop(&hak_arena.shards[i - 1].lock);
    }
    return has_room;
}

uint32_t hak_arena_returns(void)
{
    uint32_t returns = hak_load_acquire(&hak_arena.returns); // pairs with: hak_under_way_end_locked
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        returns +=
            hak_load_acquire(&hak_arena.shards[i].returns); // pairs with: hak_arena_note_return
    }
    return returns;
}

static size_t untold_most(void)
{
    const bool is_limited = hak_load_relaxed(&hak_options.limit_soft) != 0;
    const size_t part =
        HAK_PART_OF_SHARD(hak_load_relaxed(&hak_arena.part_bytes) / (hak_arena.shard_mask + 1));
    return is_limited ? 0 : hak_least(part / 2, UNTOLD_MOST);
}

// A thread that takes a shard's lock after us sees the new untold_most; one that held it before us has counted already.
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
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.mapping_bytes);
    if (mapped > hak_load_relaxed(&hak_arena.peak_bytes)) {
        hak_store_relaxed(&hak_arena.peak_bytes, mapped);
    }
}

void hak_arena_forget_peak(void)
{
    hak_store_relaxed(&hak_arena.peak_before, hak_load_relaxed(&hak_arena.used_peak));
    hak_store_relaxed(&hak_arena.used_peak, hak_arena_used_bytes());
}
