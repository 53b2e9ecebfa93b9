// units.c -- see units.h.
#include "slab/units.h"

#include "base/bits.h"
#include "base/variants.h"
#include "slab/queues.h"

void hak_units_use_locked(struct hak_shard *shard,
                          struct hak_super *super,
                          uint64_t bits,
                          uint64_t huge) HAK_REQUIRES(&shard->lock)
{
    const uint64_t touched = bits | huge;
    const size_t dirty_before = hak_super_touched_bytes(super, super->dirty_units & touched);
    const uint64_t again = super->purged_units & touched;
    super->purged_units &= ~again;
    const size_t bytes =
        hak_count_bits(again) * HAK_UNIT_BYTES + hak_super_fill_holes(super, touched);
    if (bytes != 0) {
        HAK_ARENA_COUNT(shard, retaken_bytes, bytes);
        hak_add_relaxed(&hak_variants.retaken_bytes[hak_super_group(super)], bytes);
    }
    super->free_units &= ~bits;
    super->dirty_units &= ~bits;
    if (huge != 0) {
        hak_super_note_touched_locked(super, huge);
        super->dirty_units |= super->free_units & huge;
        hak_queues_note_dirty_locked(super);
    }
    hak_arena_count_dirty(
        shard, super, hak_super_touched_bytes(super, super->dirty_units & touched) - dirty_before);
    HAK_ARENA_COUNT(shard, free_bytes, (size_t)0 - hak_count_bits(bits) * HAK_UNIT_BYTES);
    const size_t used = hak_arena_used_bytes();
    if (used > hak_load_relaxed(&hak_arena.used_peak)) {
        hak_store_relaxed(&hak_arena.used_peak, used);
    }
    hak_queues_note_units_locked(shard, super);
}

void hak_units_free_locked(struct hak_shard *shard,
                           struct hak_super *super,
                           uint64_t bits,
                           bool dirty) HAK_REQUIRES(&shard->lock)
{
    super->free_units |= bits;
    if (dirty) {
        super->dirty_units |= bits;
        super->written_units |= bits;
        hak_queues_note_dirty_locked(super);
        hak_arena_count_dirty(shard, super, hak_super_touched_bytes(super, bits));
    }
    HAK_ARENA_COUNT(shard, free_bytes, hak_count_bits(bits) * HAK_UNIT_BYTES);
    hak_queues_note_units_locked(shard, super);
    hak_arena_note_return(shard);
}
