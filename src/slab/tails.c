// tails.c -- see tails.h.
#include "slab/tails.h"

#include "meta/map.h"
#include "slab/queues.h"

static struct hak_super *run_last_unit(const struct hak_slab *run, uint64_t *bit)
{
    char *last = run->base + (run->units - 1U) * HAK_UNIT_BYTES;
    struct hak_super *super = hak_map_super(last);
    *bit = UINT64_C(1) << ((size_t)(last - super->base) >> HAK_UNIT_LOG2);
    return super;
}

void hak_tails_note_locked(struct hak_shard *shard, const struct hak_slab *run, bool is_used)
    HAK_REQUIRES(&shard->lock)
{
    uint64_t bit;
    struct hak_super *super = run_last_unit(run, &bit);
    const size_t rest = hak_tails_bytes(run);
    if (rest > run->bytes / 8 && (is_used || (super->written_units & bit) != 0)) {
        super->tail_units |= bit;
        HAK_ARENA_COUNT(shard, tail_bytes, rest);
        hak_queues_note_tails_locked(shard, super);
    }
}

void hak_tails_forget_locked(struct hak_shard *shard, const struct hak_slab *run)
    HAK_REQUIRES(&shard->lock)
{
    uint64_t bit;
    struct hak_super *super = run_last_unit(run, &bit);
    if ((super->tail_units & bit) != 0) {
        super->tail_units &= ~bit;
        HAK_ARENA_COUNT(shard, tail_bytes, (size_t)0 - hak_tails_bytes(run));
        if (super->tail_units == 0) {
            hak_list_remove(&hak_super_place(super)->tail_link);
        }
    }
}
