// arena_model.h -- random takes, gives, resizes, purges and trims of runs, checked against a model of every unit.
#ifndef HAK_TESTS_UNIT_SLAB_ARENA_MODEL_H
#define HAK_TESTS_UNIT_SLAB_ARENA_MODEL_H

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/huge_pages.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

enum { MODEL_SUPERS = 4096, MOST_RUNS = 60, LONGEST = 200 };

enum unit { UNIT_FREE, UNIT_DIRTY, UNIT_USED };

// By slot of the window. An unmapped unit counts as free.
static unsigned char model[MODEL_SUPERS * HAK_SUPER_UNITS];

struct run {
    struct hak_run *slab;
    size_t first; // in the model
    unsigned units;
    bool was_resized; // then resize_test.c looks it up
};

static struct run runs[MOST_RUNS];
static unsigned run_count;
static unsigned next_shard; // they take turns

static size_t model_index(const char *start)
{
    const size_t index = (size_t)(start - hak_map.window) / HAK_UNIT_BYTES;
    UNIT_CHECK(index < sizeof model);
    return index;
}

// A superslab with dirty units is in a queue of its shard, by the age of its latest. Returns their bytes.
static size_t check_dirty(const struct hak_shard *shard)
{
    size_t dirty = 0;
    for (unsigned i = 0; i < HAK_VARIANTS * HAK_DIRTY_QUEUES; i++) {
        const struct hak_list *list = &shard->dirty[0][0] + i;
        uint64_t tick = 0;
        for (struct hak_list *link = list->next; link != list; link = link->next) {
            const struct hak_super *super = HAK_SUPER_OF_LINK(link, dirty_link);
            UNIT_CHECK(super->dirty_units != 0 && super->dirty_tick >= tick);
            UNIT_EQUAL(super->shard, shard->number);
            UNIT_EQUAL(hak_super_place(super)->dirty_queue, i % HAK_DIRTY_QUEUES);
            UNIT_EQUAL((uintptr_t)super->base >> HAK_SUPER_LOG2 & 1, i / HAK_DIRTY_QUEUES);
            tick = super->dirty_tick;
            dirty += hak_count_bits(super->dirty_units) * HAK_UNIT_BYTES;
        }
    }
    return dirty;
}

// A wholly free superslab is in the list of those. Returns their number.
static size_t check_whole(const struct hak_shard *shard)
{
    size_t supers = 0;
    for (struct hak_list *link = shard->whole.next; link != &shard->whole; link = link->next) {
        UNIT_EQUAL(HAK_SUPER_OF_LINK(link, whole_link)->free_units, ~UINT64_C(0));
        UNIT_EQUAL(HAK_SUPER_OF_LINK(link, whole_link)->shard, shard->number);
        supers++;
    }
    UNIT_EQUAL(shard->whole_count, supers);
    return supers;
}

static void check_queues(void)
{
    size_t dirty = 0;
    size_t supers = 0;
    size_t pages = 0;
    for (unsigned i = 0; i <= hak_arena.shard_mask; i++) {
        dirty += check_dirty(&hak_arena.shards[i]);
        supers += check_whole(&hak_arena.shards[i]);
        pages += hak_arena.shards[i].free_pages;
    }
    UNIT_EQUAL(hak_arena.waiting_bytes[0] + hak_arena.waiting_bytes[1], dirty);
    UNIT_EQUAL(hak_arena.dirty_bytes, dirty);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        supers -= super->free_units == ~UINT64_C(0);
        pages -= (uint32_t)super->free_units == UINT32_MAX;
        pages -= super->free_units >> HAK_HUGE_UNITS == UINT32_MAX;
    }
    UNIT_EQUAL(supers, 0);
    UNIT_EQUAL(pages, 0);
}

// The sums are exact unless they may lag behind.
static void tell_if_late(void)
{
    if (hak_arena.untold_most != 0) {
        hak_arena_tell(true);
    }
}

// The arena's view of every unit, and its sums.
static void check_model(void)
{
    size_t supers = 0;
    size_t is_free = 0;
    size_t dirty = 0;
    tell_if_late();
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        const size_t first = model_index(super->base);
        UNIT_CHECK(hak_map_super(super->base) == super);
        UNIT_CHECK((super->dirty_units & ~super->free_units) == 0);
        for (unsigned unit = 0; unit < HAK_SUPER_UNITS; unit++) {
            UNIT_EQUAL(super->free_units >> unit & 1, model[first + unit] != UNIT_USED);
            UNIT_EQUAL(super->dirty_units >> unit & 1, model[first + unit] == UNIT_DIRTY);
        }
        supers++;
        is_free += hak_count_bits(super->free_units);
        dirty += hak_count_bits(super->dirty_units);
    }
    UNIT_EQUAL(hak_arena.super_bytes, supers * HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena.free_bytes, is_free * HAK_UNIT_BYTES);
    UNIT_EQUAL(hak_arena.dirty_bytes, dirty * HAK_UNIT_BYTES);
    check_queues();
}

// In huge pages, the free units beside a used one become resident with it.
static void model_use(size_t first, size_t units)
{
    for (size_t unit = first; unit < first + units; unit++) {
        UNIT_CHECK(model[unit] != UNIT_USED);
        model[unit] = UNIT_USED;
    }
    for (size_t unit = first; unit < first + units; unit++) {
        const struct hak_super *super = hak_map_super(hak_map.window + unit * HAK_UNIT_BYTES);
        const size_t page = unit / 32 * 32;
        for (size_t other = page; (super->huge_units >> unit % 64 & 1) != 0 && other < page + 32;
             other++) {
            model[other] = model[other] == UNIT_FREE ? UNIT_DIRTY : model[other];
        }
    }
}

static void take(unsigned units, unsigned align_units)
{
    const unsigned shard = next_shard++ & hak_arena.shard_mask;
    struct hak_run *slab = hak_runs_take(shard,
                                         units * HAK_UNIT_BYTES,
                                         align_units,
                                         HAK_RUN_LARGE,
                                         hak_huge_pages_wanted(units * HAK_UNIT_BYTES, true));
    UNIT_CHECK(slab != NULL);
    struct run *run = &runs[run_count++];
    *run = (struct run){slab, model_index(slab->base), units, false};
    UNIT_EQUAL(slab->units, units);
    UNIT_EQUAL(run->first % align_units, 0);
    model_use(run->first, units);
    for (unsigned unit = 0; unit < units; unit++) {
        char *start = slab->base + unit * HAK_UNIT_BYTES;
        UNIT_CHECK(!slab->zeroed || (start[0] == 0 && start[HAK_UNIT_BYTES - 1] == 0));
        start[0] = 1;
        start[HAK_UNIT_BYTES - 1] = 1;
    }
}

static void give(unsigned index)
{
    const struct run run = runs[index];
    runs[index] = runs[--run_count];
    hak_runs_give(run.slab);
    memset(&model[run.first], UNIT_DIRTY, run.units);
}

static void resize(struct run *run, unsigned units)
{
    bool fits = true;
    for (size_t unit = run->units; unit < units; unit++) {
        fits &= model[run->first + unit] != UNIT_USED;
    }
    const bool done = hak_runs_resize(run->slab, units * HAK_UNIT_BYTES);
    UNIT_CHECK(!done || fits);
    UNIT_CHECK(done || units > run->units);
    UNIT_EQUAL(run->slab->units, done ? units : run->units);
    if (done && units > run->units) {
        model_use(run->first + run->units, units - run->units);
        memset(run->slab->base + run->units * HAK_UNIT_BYTES, 1, 1);
    } else if (done) {
        memset(&model[run->first + units], UNIT_DIRTY, run->units - units);
    }
    run->units = done ? units : run->units;
    run->was_resized = true;
}

// An address anywhere in a run leads to its descriptor.
static void check_lookup(const struct run *run, struct ht_random *random)
{
    const size_t offset =
        ht_random_below(random, (run->was_resized ? 1 : run->units) * HAK_UNIT_BYTES);
    UNIT_CHECK(hak_run_of(run->slab->base + offset) == run->slab);
}

static void purge_all(void)
{
    const size_t dirty = hak_arena.dirty_bytes;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), dirty);
    for (size_t unit = 0; unit < sizeof model; unit++) {
        model[unit] = model[unit] == UNIT_DIRTY ? UNIT_FREE : model[unit];
    }
}

static unsigned random_units(struct ht_random *random)
{
    return 1 + (unsigned)ht_random_size(random, LONGEST - 1);
}

static void one_random_step(struct ht_random *random)
{
    const size_t what = ht_random_below(random, 100);
    if (what < 45 && run_count < MOST_RUNS) {
        const unsigned units = random_units(random);
        const unsigned align =
            units > HAK_SUPER_UNITS || what < 30 ? 1 : 1U << ht_random_below(random, 7);
        take(units, align);
    } else if (what < 80 && run_count > 0) {
        give((unsigned)ht_random_below(random, run_count));
    } else if (what < 97 && run_count > 0) {
        struct run *run = &runs[ht_random_below(random, run_count)];
        resize(run, random_units(random));
    } else if (what == 97) {
        purge_all();
    } else if (what == 98) {
        const size_t bytes = hak_arena.super_bytes;
        const size_t gone = hak_superslabs_trim();
        UNIT_EQUAL(hak_arena.super_bytes, bytes - gone);
        for (size_t slot = 0; slot < MODEL_SUPERS; slot++) { // no longer mapped, so no longer dirty
            if (hak_map_in_slot(slot) == NULL) {
                memset(&model[slot * HAK_SUPER_UNITS], UNIT_FREE, HAK_SUPER_UNITS);
            }
        }
    }
}

static void give_all(void)
{
    while (run_count > 0) {
        give(run_count - 1);
    }
    check_model();
    purge_all();
    hak_superslabs_trim();
    tell_if_late();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
    UNIT_EQUAL(hak_arena.free_bytes, 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

static void random_steps(uint64_t seed)
{
    struct ht_random random = {seed};
    for (unsigned step = 0; step < 3000; step++) {
        one_random_step(&random);
        hak_arena.tick += step % 3 == 0;
        check_model();
        if (run_count > 0) {
            check_lookup(&runs[ht_random_below(&random, run_count)], &random);
        }
    }
    give_all();
    hak_map.next_slot = 0; // the model does not reach far
}

#endif
