// queues.c -- see queues.h.
#include "slab/queues.h"

#include "base/bits.h"
#include "meta/map.h"

void hak_queues_add_locked(struct hak_super *super)
{
    hak_super_place(super)->super = super;
    hak_list_start(&hak_super_place(super)->whole_link);
    hak_list_start(&hak_super_place(super)->dirty_link);
    hak_super_place(super)->dirty_queue = HAK_DIRTY_NONE;
    hak_super_place(super)->free_pages = 0;
    hak_super_note_untouched_locked(super, ~UINT64_C(0));
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

void hak_queues_note_dirty_locked(struct hak_super *super)
{
    super->dirty_tick = hak_load_relaxed(&hak_arena.tick);
    hak_list_remove(&hak_super_place(super)->dirty_link);
    hak_super_place(super)->dirty_queue = HAK_DIRTY_NONE;
}

// Each queue stays in the order of dirty_tick though superslabs join it at the end: a superslab that becomes dirty now is
// the youngest, and purge.c takes the oldest first, so the rest that it leaves is younger than the rests already there.
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
        dirty_append_locked(shard, super, HAK_DIRTY_REST); // purge.c has taken the other units
    } else if (queue != HAK_DIRTY_WHOLE && has_whole) {
        // The last used unit of a huge page was freed while units of the page were dirty: a moment ago, so the tick is now.
        hak_queues_note_dirty_locked(super);
        dirty_append_locked(shard, super, HAK_DIRTY_WHOLE);
    }
}

static void note_free_pages_locked(struct hak_shard *shard, struct hak_super *super)
    HAK_REQUIRES(&shard->lock)
{
    struct hak_super_place *place = hak_super_place(super);
    const unsigned units = hak_count_bits(hak_super_whole_pages(super->free_units));
    const unsigned pages = units / HAK_HUGE_UNITS;
    if (pages != place->free_pages) {
        hak_count(&shard->free_pages, (size_t)pages - place->free_pages);
        place->free_pages = (uint8_t)pages;
    }
}

void hak_queues_note_units_locked(struct hak_shard *shard, struct hak_super *super)
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
    note_free_pages_locked(shard, super);
    note_dirty_units_locked(shard, super);
}
