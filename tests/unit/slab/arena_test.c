// pages: 16384 65536
// The arena: random takes, gives, resizes, purges and trims against a model of every unit.
#include "slab/arena.h"

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"

enum { MODEL_SUPERS = 4096, MOST_RUNS = 60, LONGEST = 200 };

enum unit { UNIT_FREE, UNIT_DIRTY, UNIT_USED };

// By slot of the window. A unit that is not mapped counts as free.
static unsigned char model[MODEL_SUPERS * HAK_SUPER_UNITS];

struct run {
    struct hak_slab *slab;
    size_t first; // in the model
    unsigned units;
    bool was_resized; // then resize_test.c looks it up
};

static struct run runs[MOST_RUNS];
static unsigned run_count;

static size_t model_index(const char *start)
{
    const size_t index = (size_t)(start - hak_map.window) / HAK_UNIT_BYTES;
    UNIT_CHECK(index < sizeof model);
    return index;
}

// Who has dirty units is in a queue, by the age of its latest; who is wholly free in the list of those.
static void check_queues(void)
{
    size_t dirty = 0;
    size_t supers = 0;
    for (unsigned i = 0; i < HAK_ARMS * HAK_DIRTY_QUEUES; i++) {
        const struct hak_list *list = &hak_arena.dirty[0][0] + i;
        uint64_t tick = 0;
        for (struct hak_list *link = list->next; link != list; link = link->next) {
            const struct hak_super *super = HAK_SUPER_OF_LINK(link, dirty_link);
            UNIT_CHECK(super->dirty_units != 0 && super->dirty_tick >= tick);
            UNIT_EQUAL(hak_super_place(super)->dirty_queue, i % HAK_DIRTY_QUEUES);
            UNIT_EQUAL((uintptr_t)super->base >> HAK_SUPER_LOG2 & 1, i / HAK_DIRTY_QUEUES);
            tick = super->dirty_tick;
            dirty += hak_count_bits(super->dirty_units) * HAK_UNIT_BYTES;
        }
    }
    UNIT_EQUAL(hak_arena.waiting_bytes[0] + hak_arena.waiting_bytes[1], dirty);
    UNIT_EQUAL(hak_arena.dirty_bytes, dirty);
    for (struct hak_list *link = hak_arena.whole.next; link != &hak_arena.whole;
         link = link->next) {
        UNIT_EQUAL(HAK_SUPER_OF_LINK(link, whole_link)->free_units, ~UINT64_C(0));
        supers++;
    }
    UNIT_EQUAL(hak_arena.whole_count, supers);
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        supers -= super->free_units == ~UINT64_C(0);
    }
    UNIT_EQUAL(supers, 0);
}

// What the arena says of every unit, and the sums it keeps.
static void check_model(void)
{
    size_t supers = 0;
    size_t is_free = 0;
    size_t dirty = 0;
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

// In huge pages the free neighbours become resident with a used unit.
static void model_use(size_t first, size_t units)
{
    for (size_t unit = first; unit < first + units; unit++) {
        UNIT_CHECK(model[unit] != UNIT_USED);
        model[unit] = UNIT_USED;
    }
    for (size_t unit = first; unit < first + units; unit++) {
        const struct hak_super *super = hak_map_super(hak_map.window + unit * HAK_UNIT_BYTES);
        const size_t page = unit / 32 * 32;
        for (size_t other = page; super->is_huge && other < page + 32; other++) {
            model[other] = model[other] == UNIT_FREE ? UNIT_DIRTY : model[other];
        }
    }
}

static void take(unsigned units, unsigned align_units)
{
    struct hak_slab *slab = hak_arena_take(units * HAK_UNIT_BYTES, align_units, HAK_SLAB_LARGE);
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
    hak_arena_give(run.slab);
    memset(&model[run.first], UNIT_DIRTY, run.units);
}

static void resize(struct run *run, unsigned units)
{
    bool fits = true;
    for (size_t unit = run->units; unit < units; unit++) {
        fits &= model[run->first + unit] != UNIT_USED;
    }
    const bool done = hak_arena_resize(run->slab, units * HAK_UNIT_BYTES);
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
    UNIT_CHECK(hak_slab_of(run->slab->base + offset) == run->slab);
}

static void purge_all(void)
{
    const size_t dirty = hak_arena.dirty_bytes;
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX), dirty);
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
        const size_t gone = hak_arena_trim();
        UNIT_EQUAL(hak_arena.super_bytes, bytes - gone);
        for (size_t slot = 0; slot < MODEL_SUPERS; slot++) { // no longer there, so no longer dirty
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
    hak_arena_trim();
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

static void huge_pages_are_asked_for_when_the_heap_is_dense(void)
{
    hak_fake.huge_pages = HAK_HUGE_ALWAYS;
    hak_options.huge_start_bytes = HAK_MIB(8);
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_asks, 0);
    UNIT_EQUAL(hak_fake.huge_refusals, 1); // small yet: spared them
    take(64, 64);
    hak_fake.resident_bytes = 0; // large enough, but sparse
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_asks, 0);
    hak_fake.resident_bytes = SIZE_MAX;
    take(1, 1);
    UNIT_EQUAL(hak_fake.huge_asks, 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, 31 * HAK_UNIT_BYTES); // its huge page
    hak_options.huge_start_bytes = HAK_MIB(32);
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_asks, 1); // too small for slabs, not for a block over superslabs
    take(65, 1);
    UNIT_EQUAL(hak_fake.huge_asks, 2);
    check_model();
    random_steps(99);
    hak_fake.huge_pages = HAK_HUGE_NEVER;
}

// Superslabs, so many, are taken; so many of them ask.
static void take_asking(unsigned supers, size_t asks)
{
    const size_t before = hak_fake.huge_asks;
    for (unsigned i = 0; i < supers; i++) {
        take(64, 64);
    }
    UNIT_EQUAL(hak_fake.huge_asks - before, asks);
}

static void dear_huge_pages_are_not_asked_for_in_a_hundred_times_their_time(void)
{
    hak_fake.huge_pages = HAK_HUGE_MADVISE;
    hak_options.huge_start_bytes = 0;
    const size_t refused = hak_fake.huge_refusals;
    take_asking(2, 2);
    UNIT_EQUAL(hak_fake.huge_refusals, refused);
    hak_fake.touch_ns = 1000 * hak_options.huge_dear_us + 1;
    take_asking(1, 1);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 1); // the one that was dear: its other half
    UNIT_CHECK(!hak_map_super(runs[run_count - 1].slab->base)->is_huge);
    take_asking(2, 0);
    hak_fake.now_ns += 99 * (1000 * hak_options.huge_dear_us + 1);
    take_asking(2, 0);
    hak_fake.now_ns += 1000 * hak_options.huge_dear_us + 1;
    take_asking(2, 2);
    check_model();
    // One that is taken again after it was given back decides anew.
    const unsigned last = run_count - 1;
    struct hak_super *super = hak_map_super(runs[last].slab->base);
    UNIT_CHECK(super->is_huge);
    give(last);
    purge_all();
    hak_fake.touch_ns = 1000 * hak_options.huge_dear_us + 1;
    take_asking(1, 0);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 2);
    UNIT_CHECK(!super->is_huge);
    // What the user wants is asked for whatever it costs.
    hak_options.huge_dear_us = 0;
    hak_fake.now_ns += UINT64_C(1000000000);
    hak_fake.touch_ns = UINT64_C(10000000);
    take_asking(2, 2);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 2);
    give_all();
    hak_fake.huge_pages = HAK_HUGE_NEVER;
}

// While units are being given back nobody may get them.
static void take_meanwhile(void *start, size_t bytes)
{
    hak_fake.on_purge = NULL;
    const char *low = start;
    for (unsigned i = 0; i < 20; i++) {
        take(3, 1);
        const char *base = runs[run_count - 1].slab->base;
        UNIT_CHECK(base >= low + bytes || base + 3 * HAK_UNIT_BYTES <= low);
    }
}

static void units_on_their_way_back_are_not_handed_out(void)
{
    take(40, 1);
    give(0);
    hak_fake.on_purge = take_meanwhile;
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){0, 0}, 1), 40 * HAK_UNIT_BYTES);
    UNIT_EQUAL(run_count, 20);
    for (size_t unit = 0; unit < sizeof model; unit++) {
        model[unit] = model[unit] == UNIT_DIRTY ? UNIT_FREE : model[unit];
    }
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

static void refused_purges_and_unmaps_change_nothing(void)
{
    take(10, 1);
    give(0);
    check_model();
    hak_fake.refuse_purge = true;
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX), 0);
    hak_fake.refuse_purge = false;
    check_model();
    hak_fake.refuse_unmap = true;
    UNIT_EQUAL(hak_arena_trim(), 0);
    hak_fake.refuse_unmap = false;
    check_model();
    take(64, 1);
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

static void young_and_few(void)
{
    hak_arena.tick = 100;
    take(64, 1);
    take(64, 1);
    give(0);
    hak_arena.tick = 102;
    give(0);
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){3, 3}, SIZE_MAX), 0);
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){2, 2}, SIZE_MAX), HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena.dirty_bytes, HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX), HAK_SUPER_BYTES);
    memset(model, UNIT_FREE, sizeof model);
    give_all();
    hak_map.next_slot = 0;
}

// Of a superslab with huge pages one half goes back first; the other half's units, which share their
// page with one in use, have waited as long as before.
static void a_part_goes_back_in_its_own_time(void)
{
    hak_arena.tick = 200;
    take(32, 32);
    take(16, 1);
    take(16, 1);
    hak_map_super(runs[0].slab->base)->is_huge = true;
    UNIT_CHECK(hak_map_super(runs[1].slab->base) == hak_map_super(runs[0].slab->base));
    give(1);
    give(0);
    const struct hak_purge_age age = {5, 10};
    hak_arena.tick = 205;
    UNIT_EQUAL(hak_arena_purge(age, SIZE_MAX), 32 * HAK_UNIT_BYTES);
    hak_arena.tick = 209;
    UNIT_EQUAL(hak_arena_purge(age, SIZE_MAX), 0);
    hak_arena.tick = 210;
    UNIT_EQUAL(hak_arena_purge(age, SIZE_MAX), 16 * HAK_UNIT_BYTES);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    for (size_t unit = 0; unit < sizeof model; unit++) {
        model[unit] = model[unit] == UNIT_DIRTY ? UNIT_FREE : model[unit];
    }
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

static void groups_of_superslabs_have_ages_of_their_own(void)
{
    hak_arena.tick = 300;
    take(64, 1);
    take(64, 1);
    const size_t group = (uintptr_t)runs[0].slab->base >> HAK_SUPER_LOG2 & 1;
    give(1);
    give(0);
    size_t waiting[HAK_ARMS];
    hak_arena_waiting(waiting);
    UNIT_EQUAL(waiting[0], HAK_SUPER_BYTES);
    UNIT_EQUAL(waiting[1], HAK_SUPER_BYTES);
    struct hak_purge_age ages[HAK_ARMS] = {{20, 40}, {20, 40}};
    ages[group] = (struct hak_purge_age){5, 10};
    hak_arena.tick = 305;
    UNIT_EQUAL(hak_arena_purge_groups(ages, SIZE_MAX), HAK_SUPER_BYTES);
    hak_arena_waiting(waiting);
    UNIT_EQUAL(waiting[group], 0);
    hak_arena.tick = 319;
    UNIT_EQUAL(hak_arena_purge_groups(ages, SIZE_MAX), 0);
    hak_arena.tick = 320;
    UNIT_EQUAL(hak_arena_purge_groups(ages, SIZE_MAX), HAK_SUPER_BYTES);
    // What is used again after that is counted for its group.
    const uint64_t before[HAK_ARMS] = {hak_arms.retaken_bytes[0], hak_arms.retaken_bytes[1]};
    take(64, 1);
    const size_t again = (uintptr_t)runs[0].slab->base >> HAK_SUPER_LOG2 & 1;
    UNIT_EQUAL(hak_arms.retaken_bytes[again] - before[again], HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arms.retaken_bytes[again ^ 1] - before[again ^ 1], 0);
    give(0);
    hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    for (size_t unit = 0; unit < sizeof model; unit++) {
        model[unit] = model[unit] == UNIT_DIRTY ? UNIT_FREE : model[unit];
    }
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

static void without_memory_nothing_changes(void)
{
    take(60, 1);
    for (unsigned n = 1; n <= 4; n++) {
        hak_fake_fail_in(n, SIZE_MAX / 2);
        struct hak_slab *slab = hak_arena_take(100 * HAK_UNIT_BYTES, 1, HAK_SLAB_LARGE);
        hak_fake.fail_times = 0;
        if (slab != NULL) {
            hak_arena_give(slab);
            memset(&model[model_index(slab->base)], UNIT_DIRTY, 100);
        }
        check_model();
    }
    take(130, 1);
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        random_steps(seed);
    }
    units_on_their_way_back_are_not_handed_out();
    refused_purges_and_unmaps_change_nothing();
    young_and_few();
    a_part_goes_back_in_its_own_time();
    groups_of_superslabs_have_ages_of_their_own();
    without_memory_nothing_changes();
    huge_pages_are_asked_for_when_the_heap_is_dense();
    dear_huge_pages_are_not_asked_for_in_a_hundred_times_their_time();
    return 0;
}
