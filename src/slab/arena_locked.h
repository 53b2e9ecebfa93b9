// arena_locked.h -- what the files of the arena share; the caller holds the lock that each names.
#ifndef HAK_SLAB_ARENA_LOCKED_H
#define HAK_SLAB_ARENA_LOCKED_H

#include "base/options.h"
#include "slab/arena.h"

// The free or dirty units of `super` have changed: it is found by these from now on.
HAK_INTERNAL void hak_arena_note_units_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock);
// Units of it become dirty now; to be followed by the above.
HAK_INTERNAL void hak_arena_note_dirty_locked(struct hak_super *super);
// A descriptor is in no queue.
HAK_INTERNAL void hak_queues_add_locked(struct hak_super *super);
HAK_INTERNAL void hak_queues_start(struct hak_shard *shard);
// A superslab that is wholly free goes from one shard to another.
HAK_INTERNAL void hak_queues_move_locked(struct hak_shard *from,
                                         struct hak_shard *to,
                                         struct hak_super *super)
    HAK_REQUIRES(&from->lock, &to->lock);
// The dirty units that may go first: all but parts of huge pages in use.
HAK_INTERNAL uint64_t hak_super_whole_units(const struct hak_super *super);

// A run ends with a unit, its user's bytes with a page. What earlier users of the last unit touched
// stays resident for nothing, up to as much again as a block of 36 KiB: noted here, given back
// when it has lasted (purge.c). `is_used`: its present user may have touched it.
HAK_INTERNAL void hak_run_note_tail_locked(struct hak_shard *shard,
                                           const struct hak_slab *run,
                                           bool is_used) HAK_REQUIRES(&shard->lock);
HAK_INTERNAL void hak_run_forget_tail_locked(struct hak_shard *shard, const struct hak_slab *run)
    HAK_REQUIRES(&shard->lock);
// The tails of `super` have waited for nothing so far, or are gone.
HAK_INTERNAL void hak_super_note_tails_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock);
// Mark units free; `dirty` when their pages may be resident.
HAK_INTERNAL void hak_arena_free_units_locked(struct hak_shard *shard,
                                              struct hak_super *super,
                                              uint64_t bits,
                                              bool dirty) HAK_REQUIRES(&shard->lock);

// The units of the two huge pages of a superslab, each if all of it is among `units`.
HAK_INLINE uint64_t hak_units_of_whole_pages(uint64_t units)
{
    const uint64_t low = UINT64_C(0xFFFFFFFF); // the units of the first huge page
    return ((units & low) == low ? low : 0) | ((units & ~low) == ~low ? ~low : 0);
}

// The shard of a superslab with a run in use, or whose shard's lock the caller holds; NULL for no superslab.
HAK_INLINE struct hak_shard *hak_super_shard(const struct hak_super *super)
{
    const unsigned number = hak_load_relaxed(&super->shard);
    return number != HAK_NO_SHARD ? &hak_arena.shards[number] : NULL;
}

// Add to a sum of all shards. The only shard does so under its lock. Of several each tells it at once, or, while the sweeper is
// awake, when it has much to tell: all processors would write the word in turn.
HAK_INLINE void hak_shard_tell(_Atomic(size_t) *untold, _Atomic(size_t) *sum, size_t bytes)
{
    if (HAK_LIKELY(hak_arena.shard_mask == 0)) {
        hak_count(sum, bytes);
        return;
    }
    const size_t most = hak_load_relaxed(&hak_arena.untold_most);
    const size_t now = hak_load_relaxed(untold) + bytes;
    const bool is_enough = now + most > 2 * most;
    if (is_enough) {
        hak_add_relaxed(sum, now);
    }
    hak_store_relaxed(untold, is_enough ? 0 : now);
}
#define HAK_SHARD_COUNT(shard, sum, bytes) \
    hak_shard_tell(&(shard)->untold.sum, &hak_arena.sum, (bytes))

// Which of two groups it belongs to while an option is on trial (base/arms.h): by turns.
HAK_INLINE unsigned hak_super_group(const struct hak_super *super)
{
    return (unsigned)((uintptr_t)super->base >> HAK_SUPER_LOG2) & 1;
}

// Mappings outside our window (outside.c). Before one is added there has to be room for it: false without memory.
HAK_INTERNAL bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_outside_remove_locked(const struct hak_super *super)
    HAK_REQUIRES(&hak_arena.lock);

// What may be resident of these units, if nobody uses them.
HAK_INLINE size_t hak_super_touched_bytes(const struct hak_super *super, uint64_t units)
{
    const struct hak_super_place *place = hak_super_place(super);
    size_t bytes = hak_count_bits(units) * HAK_UNIT_BYTES;
    for (uint64_t sparse = units & place->sparse_units; sparse != 0; sparse &= sparse - 1) {
        bytes -= place->untouched[hak_lowest_bit(sparse)] * (size_t)HAK_CHUNK_BYTES;
    }
    return bytes;
}

// Somebody has touched the units, maybe all of them to the end; or they were given back. They are not dirty.
HAK_INTERNAL void hak_super_note_touched_locked(struct hak_super *super, uint64_t units);
HAK_INTERNAL void hak_super_note_untouched_locked(struct hak_super *super, uint64_t units);

HAK_INLINE void hak_super_count_dirty(struct hak_shard *shard,
                                      const struct hak_super *super,
                                      size_t bytes) HAK_REQUIRES(&shard->lock)
{
    HAK_SHARD_COUNT(shard, dirty_bytes, bytes);
    HAK_SHARD_COUNT(shard, waiting_bytes[hak_super_group(super)], bytes);
}

// Is the heap limited to a size (option limit_hard)?
HAK_INLINE bool hak_arena_is_limited(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_options.limit_hard) != 0);
}

// Map the superslabs for a run of `units`. The slot of the first; UINT64_MAX when not all could be had.
HAK_INTERNAL uint64_t hak_shard_grow_locked(struct hak_shard *shard, unsigned units)
    HAK_REQUIRES(&shard->lock, &hak_arena.lock);
// A gap for a run, in what there is or, if the shard may grow, in what is added for it.
HAK_INTERNAL bool hak_shard_find_locked(struct hak_shard *shard,
                                        unsigned units,
                                        unsigned align_units,
                                        bool may_grow,
                                        struct hak_gap *gap) HAK_REQUIRES(&shard->lock);

// Memory goes back from here on, without our lock: who is about to be refused waits for it. Its number; the second to be
// followed by the third, without a lock.
HAK_INTERNAL uint64_t hak_under_way_begin_locked(void) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_end_locked(uint64_t number) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL void hak_under_way_tell(void);

// Something was mapped for blocks.
HAK_INTERNAL void hak_arena_note_peak_locked(void) HAK_REQUIRES(&hak_arena.lock);

// From the end of its user's bytes to the end of a run.
HAK_INLINE size_t hak_run_tail_bytes(const struct hak_slab *run)
{
    return run->units * HAK_UNIT_BYTES - run->bytes;
}

#endif
