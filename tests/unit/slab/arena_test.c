// soak in: tsan
// pages: 16384 65536
// The arena against a model of every unit; huge pages, memory on its way back, refusals.
#include "arena_model.h"
#include "slab/mapping.h"

// The mapped memory gets old enough to judge whether it is used.
static void time_passes(void)
{
    hak_fake.now_ns += UINT64_C(1000000000);
    hak_arena_read_clock();
}

static void huge_pages_are_asked_for_when_the_heap_is_dense(void)
{
    hak_arena.grants_huge = true;
    hak_fake.huge_refusals = 0;
    hak_options.huge_start_bytes = HAK_MIB(8);
    take(32, 32);
    hak_fake.refuse_collapse = true; // that is collapse_test.c
    UNIT_EQUAL(hak_fake.huge_asks, 0);
    UNIT_EQUAL(hak_fake.huge_refusals, 1); // small so far: it opts out of them
    take(32, 32);
    hak_arena.part_bytes = 0; // no block counts as dense
    take(64, 64);
    hak_fake.resident_bytes = 0; // large enough, but sparse
    time_passes();
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_asks, 0);
    hak_fake.resident_bytes = SIZE_MAX;
    take(1, 1);
    UNIT_EQUAL(hak_fake.huge_asks, 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, 31 * HAK_UNIT_BYTES); // in its huge page
    hak_options.huge_start_bytes = HAK_MIB(16);
    take(16, 16);
    UNIT_EQUAL(hak_fake.huge_asks,
               1); // too small for slabs, not for blocks of a huge page and more
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_asks, 2);
    take(65, 1);
    UNIT_EQUAL(hak_fake.huge_asks, 3);
    struct hak_run *mapping =
        hak_mapping_make(HAK_MIB(6), 1, hak_huge_pages_wanted(HAK_MIB(6), true));
    UNIT_CHECK(mapping != NULL);
    UNIT_EQUAL(hak_fake.huge_asks, 4); // nor for one in a mapping of its own
    hak_mapping_end(mapping);
    check_model();
    random_steps(99);
    hak_arena.grants_huge = false;
}

// Take this many superslabs; of them `asks` ask for huge pages.
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
    hak_arena.grants_huge = true;
    hak_options.huge_start_bytes = 0;
    hak_arena.part_bytes = SIZE_MAX; // a block counts as dense
    const size_t refused = hak_fake.huge_refusals;
    take_asking(2, 2);
    UNIT_EQUAL(hak_fake.huge_refusals, refused);
    const uint64_t dear_ns = 4000 * hak_options.huge_dear_us;
    hak_fake.touch_ns = dear_ns;
    take_asking(2, 2);
    UNIT_EQUAL(hak_fake.huge_refusals, refused); // it may be chance
    take_asking(1, 1);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 1); // the slow one: its other half
    UNIT_EQUAL(hak_map_super(runs[run_count - 1].slab->base)->huge_units, 0);
    take_asking(2, 0);
    hak_fake.now_ns += 98 * dear_ns;
    take_asking(2, 0);
    hak_fake.now_ns += 2 * dear_ns;
    // A touch that takes longer has waited for something else: the pause after it is no longer.
    hak_fake.touch_ns = 3 * dear_ns;
    take_asking(1, 1);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals,
               refused + 4 + 2); // four superslabs asked for none from the start
    take_asking(1, 0);
    hak_fake.now_ns += 100 * dear_ns;
    take_asking(5, 5);
    check_model();
    // A huge page that is taken again after it was purged decides again.
    const unsigned last = run_count - 1;
    struct hak_super *super = hak_map_super(runs[last].slab->base);
    UNIT_EQUAL(super->huge_units, ~UINT64_C(0));
    hak_fake.touch_ns = dear_ns;
    take_asking(1, 1);
    hak_fake.touch_ns = 0;
    give(last);
    purge_all();
    hak_fake.touch_ns = dear_ns;
    take_asking(1, 0);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 5 + 3);
    UNIT_EQUAL(super->huge_units, 0);
    // What the user wants is asked for, whatever it costs.
    hak_options.huge_dear_us = 0;
    hak_fake.now_ns += UINT64_C(1000000000);
    hak_fake.touch_ns = UINT64_C(10000000);
    take_asking(2, 2);
    hak_fake.touch_ns = 0;
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 5 + 3);
    give_all();
    hak_options.huge_dear_us = 1000;
    hak_arena.grants_huge = false;
}

// The clock advances in ticks: an eighth of the touches that take half of the limit see one between start and end,
// and half of those that take twice the limit.
static void what_huge_pages_take_is_right_in_the_mean(void)
{
    hak_arena.grants_huge = true;
    const uint64_t tick_ns = 4000 * hak_options.huge_dear_us;
    const size_t refused = hak_fake.huge_refusals;
    for (unsigned i = 1; i <= 48; i++) {
        hak_fake.touch_ns = i % 8 == 0 ? tick_ns : 0;
        take_asking(1, 1);
    }
    UNIT_EQUAL(hak_fake.huge_refusals, refused);
    for (unsigned i = 1; i <= 24 && hak_fake.huge_refusals == refused; i++) {
        hak_fake.touch_ns = i % 2 == 0 ? tick_ns : 0;
        take_asking(1, 1);
    }
    UNIT_EQUAL(hak_fake.huge_refusals, refused + 1);
    hak_fake.touch_ns = 0;
    give_all();
    hak_arena.grants_huge = false;
}

// The kernel has memory that went back at hand.
static void huge_pages_are_no_longer_dear_once_much_went_back(void)
{
    enum { SUPERS = 17 };
    hak_arena.grants_huge = true;
    take_asking(SUPERS, SUPERS);
    hak_fake.touch_ns = 4000 * hak_options.huge_dear_us;
    take_asking(3, 3);
    hak_fake.touch_ns = 0;
    take_asking(1, 0);
    give(run_count - 1);
    purge_all();
    take_asking(1, 0);
    while (run_count > 0) {
        give(run_count - 1);
    }
    purge_all();
    const size_t refused = hak_fake.huge_refusals;
    take(64, 64);
    UNIT_EQUAL(hak_fake.huge_refusals, refused);
    UNIT_EQUAL(hak_map_super(runs[0].slab->base)->huge_units, ~UINT64_C(0));
    give_all();
    hak_arena.grants_huge = false;
}

// Memory that was purged in parts keeps its page tables, which prevent huge pages.
static void what_went_back_in_parts_loses_its_page_tables(void)
{
    hak_arena.grants_huge = true;
    const size_t drops = hak_fake.table_drops;
    take(16, 64); // half of a huge page
    take(48, 16);
    UNIT_EQUAL(hak_fake.table_drops, drops); // it was never used
    for (unsigned i = 0; i < 2; i++) {
        give(0);
        purge_all();
    }
    take_asking(1, 1);
    UNIT_EQUAL(hak_fake.table_drops, drops + 1);
    give_all();
    hak_arena.grants_huge = false;
}

// The other half of the superslab is in use, and keeps small pages; when it is first used later, that is timed.
static void each_huge_page_decides_for_itself(void)
{
    const uint64_t low = UINT64_C(0xFFFFFFFF);
    hak_options.deterministic = 1; // nothing is examined, everything counts as dense
    take(16, 64);
    take(16, 16);
    take(16, 16);
    struct hak_super *super = hak_map_super(runs[0].slab->base);
    UNIT_CHECK(hak_map_super(runs[2].slab->base) == super);
    give(1);
    give(0);
    purge_all();
    hak_arena.grants_huge = true;
    hak_options.huge_start_bytes = 0;
    const size_t drops = hak_fake.table_drops;
    const size_t asks = hak_fake.huge_asks;
    take(32, 32);
    UNIT_CHECK(hak_map_super(runs[1].slab->base) == super);
    UNIT_EQUAL(super->huge_units, low);
    UNIT_EQUAL(super->huge_new_units, 0);
    UNIT_EQUAL(hak_fake.huge_asks, asks + 1);
    UNIT_EQUAL(hak_fake.table_drops, drops + 1);
    check_model();
    give_all();
    // In a superslab that was mapped with both halves huge, each half is new until it is used.
    take(32, 64);
    super = hak_map_super(runs[0].slab->base);
    UNIT_EQUAL(super->huge_units, ~UINT64_C(0));
    UNIT_EQUAL(super->huge_new_units, ~low);
    take(32, 32);
    UNIT_EQUAL(super->huge_new_units, 0);
    give_all();
    hak_options.deterministic = 0;
    hak_arena.grants_huge = false;
}

// While units are being purged, no request may get them.
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
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, 1), 40 * HAK_UNIT_BYTES);
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
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), 0);
    hak_fake.refuse_purge = false;
    check_model();
    hak_fake.refuse_unmap = true;
    UNIT_EQUAL(hak_superslabs_trim(), 0);
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
    UNIT_EQUAL(hak_purge((struct hak_purge_age){3, 3}, SIZE_MAX), 0);
    UNIT_EQUAL(hak_purge((struct hak_purge_age){2, 2}, SIZE_MAX), HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena.dirty_bytes, HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), HAK_SUPER_BYTES);
    memset(model, UNIT_FREE, sizeof model);
    give_all();
    hak_map.next_slot = 0;
}

// One half of a superslab with huge pages goes back first; the other half's free units, which share their huge
// page with one in use, have waited as long as before.
static void a_part_goes_back_in_its_own_time(void)
{
    hak_arena.tick = 200;
    take(32, 32);
    take(16, 1);
    take(16, 1);
    struct hak_super *super = hak_map_super(runs[0].slab->base);
    super->huge_units = ~UINT64_C(0);
    UNIT_CHECK(hak_map_super(runs[1].slab->base) == super);
    give(1);
    give(0);
    const struct hak_purge_age age = {5, 10};
    hak_arena.tick = 205;
    UNIT_EQUAL(hak_purge(age, SIZE_MAX), 32 * HAK_UNIT_BYTES);
    UNIT_EQUAL(super->huge_units, ~UINT64_C(0)); // a whole huge page
    hak_arena.tick = 209;
    UNIT_EQUAL(hak_purge(age, SIZE_MAX), 0);
    hak_arena.tick = 210;
    UNIT_EQUAL(hak_purge(age, SIZE_MAX), 16 * HAK_UNIT_BYTES);
    UNIT_EQUAL(super->huge_units,
               UINT64_C(0xFFFFFFFF)); // or the kernel fills the hole in the background
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
    UNIT_EQUAL(hak_arena.waiting_bytes[0], HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena.waiting_bytes[1], HAK_SUPER_BYTES);
    struct hak_purge_age ages[HAK_VARIANTS] = {{20, 40}, {20, 40}};
    ages[group] = (struct hak_purge_age){5, 10};
    hak_arena.tick = 305;
    UNIT_EQUAL(hak_purge_groups(ages, SIZE_MAX), HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_arena.waiting_bytes[group], 0);
    hak_arena.tick = 319;
    UNIT_EQUAL(hak_purge_groups(ages, SIZE_MAX), 0);
    hak_arena.tick = 320;
    UNIT_EQUAL(hak_purge_groups(ages, SIZE_MAX), HAK_SUPER_BYTES);
    // What is used again after that counts for its group.
    const uint64_t before[HAK_VARIANTS] = {hak_variants.retaken_bytes[0],
                                           hak_variants.retaken_bytes[1]};
    take(64, 1);
    const size_t again = (uintptr_t)runs[0].slab->base >> HAK_SUPER_LOG2 & 1;
    UNIT_EQUAL(hak_variants.retaken_bytes[again] - before[again], HAK_SUPER_BYTES);
    UNIT_EQUAL(hak_variants.retaken_bytes[again ^ 1] - before[again ^ 1], 0);
    give(0);
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    for (size_t unit = 0; unit < sizeof model; unit++) {
        model[unit] = model[unit] == UNIT_DIRTY ? UNIT_FREE : model[unit];
    }
    check_model();
    give_all();
    hak_map.next_slot = 0;
}

static uint64_t retaken_bytes(void)
{
    return hak_variants.retaken_bytes[0] + hak_variants.retaken_bytes[1];
}

// One unit of a purged huge page is used: the whole page is resident again.
static void a_huge_page_is_taken_again_as_a_whole(void)
{
    take(32, 32);
    take(32, 1);
    hak_map_super(runs[0].slab->base)->huge_units = ~UINT64_C(0);
    give(0);
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), 32 * HAK_UNIT_BYTES);
    const uint64_t before = retaken_bytes();
    take(1, 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, 31 * HAK_UNIT_BYTES);
    UNIT_EQUAL(retaken_bytes() - before, 32 * HAK_UNIT_BYTES);
    take(31, 1);
    UNIT_EQUAL(retaken_bytes() - before, 32 * HAK_UNIT_BYTES);
    memset(model, UNIT_FREE, sizeof model);
    give_all();
    hak_map.next_slot = 0;
}

static void without_memory_nothing_changes(void)
{
    take(60, 1);
    for (unsigned n = 1; n <= 4; n++) {
        hak_fake_fail_in(n, SIZE_MAX / 2);
        struct hak_run *slab = hak_runs_take(0, 100 * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
        hak_fake.fail_times = 0;
        if (slab != NULL) {
            hak_runs_give(slab);
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
    a_huge_page_is_taken_again_as_a_whole();
    without_memory_nothing_changes();
    huge_pages_are_asked_for_when_the_heap_is_dense();
    dear_huge_pages_are_not_asked_for_in_a_hundred_times_their_time();
    what_huge_pages_take_is_right_in_the_mean();
    huge_pages_are_no_longer_dear_once_much_went_back();
    what_went_back_in_parts_loses_its_page_tables();
    each_huge_page_decides_for_itself();
    return 0;
}
