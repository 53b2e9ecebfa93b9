// queues.c -- which superslab is next: to be given back from, to be unmapped, to put a run into. Everything that
// changes one says so here, so that nobody has to look through all of them (see arena_locked.h).
#include "base/bits.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/arena_locked.h"
#include "slab/gaps.h"

void hak_queues_start(struct hak_shard *shard)
{
    hak_list_start(&shard->whole);
    for (unsigned group = 0; group < HAK_ARMS; group++) {
        hak_list_start(&shard->tails[group]);
        for (unsigned queue = 0; queue < HAK_DIRTY_QUEUES; queue++) {
            hak_list_start(&shard->dirty[group][queue]);
        }
    }
}

void hak_queues_add_locked(struct hak_super *super)
{
    hak_super_place(super)->super = super;
    hak_list_start(&hak_super_place(super)->whole_link);
    hak_list_start(&hak_super_place(super)->dirty_link);
    hak_list_start(&hak_super_place(super)->tail_link);
    hak_super_place(super)->dirty_queue = HAK_DIRTY_NONE;
    hak_super_note_untouched_locked(super, ~UINT64_C(0));
}

void hak_super_note_touched_locked(struct hak_super *super, uint64_t units)
{
    hak_super_place(super)->sparse_units &= ~units;
}

void hak_super_note_untouched_locked(struct hak_super *super, uint64_t units)
{
    struct hak_super_place *place = hak_super_place(super);
    place->sparse_units |= units;
    for (; units != 0; units &= units - 1) {
        place->untouched[hak_lowest_bit(units)] = HAK_UNIT_CHUNKS;
    }
}

uint64_t hak_super_whole_units(const struct hak_super *super)
{
    if (!super->is_huge) {
        return super->dirty_units;
    }
    return super->dirty_units & hak_units_of_whole_pages(super->free_units);
}

static void dirty_append_locked(struct hak_shard *shard,
                                struct hak_super *super,
                                enum hak_dirty_queue queue) HAK_REQUIRES(&shard->lock)
{
    hak_list_remove(&hak_super_place(super)->dirty_link);
    hak_list_append(&shard->dirty[hak_super_group(super)][queue],
                    &hak_super_place(super)->dirty_link);
    hak_super_place(super)->dirty_queue = (uint8_t)queue;
}

void hak_arena_note_dirty_locked(struct hak_super *super)
{
    super->dirty_tick = hak_load_relaxed(&hak_arena.tick);
    hak_list_remove(&hak_super_place(super)->dirty_link);
    hak_super_place(super)->dirty_queue = HAK_DIRTY_NONE;
}

// Each queue is in the order of dirty_tick, though all join it at its end: what becomes dirty now is the youngest, and
// purge.c takes the oldest first, so that what it leaves of one is younger than what it has left of others.
static void note_dirty_units_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    const unsigned queue = hak_super_place(super)->dirty_queue;
    if (super->dirty_units == 0) {
        hak_list_remove(&hak_super_place(super)->dirty_link);
        hak_super_place(super)->dirty_queue = HAK_DIRTY_NONE;
        return;
    }
    const bool has_whole = hak_super_whole_units(super) != 0;
    if (queue == HAK_DIRTY_NONE) {
        dirty_append_locked(shard, super, has_whole ? HAK_DIRTY_WHOLE : HAK_DIRTY_PART);
    } else if (queue == HAK_DIRTY_WHOLE && !has_whole) {
        dirty_append_locked(
            shard, super, HAK_DIRTY_REST); // purge.c has taken the others, of the oldest
    } else if (queue != HAK_DIRTY_WHOLE && has_whole) {
        // The rest of a huge page has come back while units of it were freed: a moment ago, that is now.
        hak_arena_note_dirty_locked(super);
        dirty_append_locked(shard, super, HAK_DIRTY_WHOLE);
    }
}

void hak_arena_note_units_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    const bool is_in_window = hak_map_slot(super->base) != UINT64_MAX;
    hak_gaps_note(&shard->gaps, hak_map_slot_of(super->base), super->free_units, is_in_window);
    const bool is_whole = super->free_units == ~UINT64_C(0);
    if (is_whole != hak_list_is_linked(&hak_super_place(super)->whole_link)) {
        if (is_whole) {
            hak_list_append(&shard->whole, &hak_super_place(super)->whole_link);
            hak_count(&shard->whole_count, 1);
        } else {
            hak_list_remove(&hak_super_place(super)->whole_link);
            hak_count(&shard->whole_count, (size_t)0 - 1);
        }
    }
    note_dirty_units_locked(shard, super);
}

// Its dirty units count as of now: it is about to be used.
void hak_queues_move_locked(struct hak_shard *from, struct hak_shard *to, struct hak_super *super)
    HAK_REQUIRES(&from->lock, &to->lock)
{
    const uint64_t dirty = super->dirty_units;
    const size_t bytes = hak_super_touched_bytes(super, dirty);
    super->free_units = 0;
    super->dirty_units = 0;
    hak_arena_note_units_locked(from, super);
    hak_super_count_dirty(from, super, (size_t)0 - bytes);
    HAK_SHARD_COUNT(from, free_bytes, (size_t)0 - HAK_SUPER_BYTES);
    hak_store_relaxed(&super->shard, to->number);
    super->free_units = ~UINT64_C(0);
    super->dirty_units = dirty;
    hak_super_count_dirty(to, super, bytes);
    HAK_SHARD_COUNT(to, free_bytes, HAK_SUPER_BYTES);
    hak_arena_note_dirty_locked(super);
    hak_arena_note_units_locked(to, super);
}

void hak_super_note_tails_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    hak_list_remove(&hak_super_place(super)->tail_link);
    if (super->tail_units != 0) {
        hak_super_place(super)->tail_tick = hak_load_relaxed(&hak_arena.tick);
        hak_list_append(&shard->tails[hak_super_group(super)], &hak_super_place(super)->tail_link);
    }
}

static struct hak_super *run_last_unit(const struct hak_slab *run, uint64_t *bit)
{
    char *last = run->base + (run->units - 1U) * HAK_UNIT_BYTES;
    struct hak_super *super = hak_map_super(last);
    *bit = UINT64_C(1) << ((size_t)(last - super->base) >> HAK_UNIT_LOG2);
    return super;
}

void hak_run_note_tail_locked(struct hak_shard *shard, const struct hak_slab *run, bool is_used)
    HAK_REQUIRES(&shard->lock)
{
    uint64_t bit;
    struct hak_super *super = run_last_unit(run, &bit);
    const size_t rest = hak_run_tail_bytes(run);
    if (rest > run->bytes / 8 && (is_used || (super->written_units & bit) != 0)) {
        super->tail_units |= bit;
        HAK_SHARD_COUNT(shard, tail_bytes, rest);
        hak_super_note_tails_locked(shard, super);
    }
}

void hak_run_forget_tail_locked(struct hak_shard *shard, const struct hak_slab *run)
    HAK_REQUIRES(&shard->lock)
{
    uint64_t bit;
    struct hak_super *super = run_last_unit(run, &bit);
    if ((super->tail_units & bit) != 0) {
        super->tail_units &= ~bit;
        HAK_SHARD_COUNT(shard, tail_bytes, (size_t)0 - hak_run_tail_bytes(run));
        if (super->tail_units == 0) {
            hak_list_remove(&hak_super_place(super)->tail_link);
        }
    }
}
