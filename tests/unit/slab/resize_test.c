// pages: 16384 65536
// Runs that grow and shrink in place, across the ends of superslabs and of the window.
#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

static struct hak_run *take(unsigned units)
{
    struct hak_run *run = hak_runs_take(0, units * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(run != NULL);
    return run;
}

static bool resize(struct hak_run *run, unsigned units)
{
    return hak_runs_resize(run, units * HAK_UNIT_BYTES);
}

static void check_every_unit(const struct hak_run *run)
{
    for (unsigned unit = 0; unit < run->units; unit++) {
        UNIT_CHECK(hak_run_of(run->base + unit * HAK_UNIT_BYTES + 1) == run);
    }
    UNIT_CHECK(hak_run_of(run->base + run->units * HAK_UNIT_BYTES) != run);
}

static void start_anew(void)
{
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    hak_superslabs_trim();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
    hak_map.next_slot = 0;
}

// The free superslabs into which a growing run continues.
static void make_room(unsigned units)
{
    hak_runs_give(take(units));
}

static void growing_keeps_the_content(void)
{
    make_room(300);
    struct hak_run *run = take(10);
    memset(run->base, 3, run->units * HAK_UNIT_BYTES);
    UNIT_CHECK(resize(run, 60));
    UNIT_CHECK(run->base[10 * HAK_UNIT_BYTES - 1] == 3);
    check_every_unit(run);
    UNIT_CHECK(resize(run, 1));
    check_every_unit(run);
    hak_runs_give(run);
    start_anew();
}

static void others_are_not_grown_over(void)
{
    struct hak_run *run = take(10);
    struct hak_run *wall = take(1);
    UNIT_CHECK(wall->base == run->base + 10 * HAK_UNIT_BYTES);
    UNIT_CHECK(!resize(run, 11));
    UNIT_EQUAL(run->units, 10);
    hak_runs_give(wall);
    UNIT_CHECK(resize(run, 11));
    hak_runs_give(run);
    start_anew();
}

// From any first to any last unit of a run, to every length up to three superslabs.
static void every_address_of_a_grown_run_leads_to_it(void)
{
    for (unsigned units = 1; units <= 129; units += 16) {
        for (unsigned more = units; more <= 192; more += 21) {
            make_room(256);
            struct hak_run *run = take(units);
            if (resize(run, more)) {
                check_every_unit(run);
                UNIT_CHECK(resize(run, (units + more) / 2));
                check_every_unit(run);
            }
            hak_runs_give(run);
            start_anew();
        }
    }
}

static void a_run_that_fills_its_superslab_goes_on_in_the_next(void)
{
    struct hak_run *run = take(200); // with others behind it
    UNIT_CHECK(resize(run, HAK_SUPER_UNITS));
    check_every_unit(run);
    UNIT_CHECK(resize(run, 100));
    check_every_unit(run);
    UNIT_CHECK(resize(run, HAK_SUPER_UNITS));
    check_every_unit(run);
    hak_runs_give(run);
    start_anew();
}

static void what_is_missing_behind_a_run_is_mapped(void)
{
    struct hak_run *run = take(60);
    char *base = run->base;
    for (unsigned units = 65; units <= 400; units += units / 100 + 1) {
        UNIT_CHECK(resize(run, units));
        check_every_unit(run);
    }
    UNIT_CHECK(run->base == base);
    UNIT_CHECK(hak_arena.super_bytes - run->units * HAK_UNIT_BYTES < HAK_SUPER_BYTES);
    hak_runs_give(run);
    start_anew();
}

static void nothing_is_mapped_where_the_run_could_not_go_on(void)
{
    struct hak_run *run = take(60);
    struct hak_run *wall = take(1); // in the rest of the superslab
    UNIT_CHECK(!resize(run, 70));
    hak_runs_give(wall);
    hak_map.next_slot += 5; // so that the next mapping is elsewhere
    UNIT_CHECK(!resize(run, 70));
    hak_map.next_slot -= 5;
    hak_fake_fail_in(1, SIZE_MAX / 2);
    UNIT_CHECK(!resize(run, 70));
    hak_fake_fail_in(0, 0);
    UNIT_EQUAL(run->units, 60);
    UNIT_EQUAL(hak_arena.super_bytes, HAK_SUPER_BYTES);
    hak_runs_give(run);
    start_anew();
}

// Behind the window nothing is ours, though the map wraps around to its start there.
static void the_end_of_the_window_is_an_end(void)
{
    struct hak_run *first = take(HAK_SUPER_UNITS);
    UNIT_EQUAL(hak_map_slot(first->base), 1);
    hak_map.next_slot = hak_map.super_mask;
    struct hak_run *last = take(HAK_SUPER_UNITS);
    UNIT_EQUAL(hak_map_slot(last->base), hak_map.super_mask);
    UNIT_CHECK(!resize(last, 70));
    hak_runs_give(first); // now there would be room
    UNIT_CHECK(!resize(last, 70));
    hak_runs_give(last);
    start_anew();
}

// Wherever the kernel has put a superslab, the map's entry for its end is that of other addresses.
static void outside_the_window_nothing_is_taken_for_the_next(void)
{
    hak_fake.refuse_hints = true;
    struct hak_run *run = take(HAK_SUPER_UNITS);
    UNIT_CHECK(hak_map_slot(run->base) == UINT64_MAX);
    hak_fake.refuse_hints = false;
    hak_map.next_slot = (((uintptr_t)run->base >> HAK_SUPER_LOG2) + 1) & hak_map.super_mask;
    struct hak_run *alias = take(HAK_SUPER_UNITS);
    hak_runs_give(alias);
    UNIT_CHECK(!resize(run, 70));
    hak_runs_give(run);
    start_anew();
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    growing_keeps_the_content();
    others_are_not_grown_over();
    if (!HAK_TSAN) { // its window is where the kernel puts other mappings
        the_end_of_the_window_is_an_end();
        outside_the_window_nothing_is_taken_for_the_next();
    }
    a_run_that_fills_its_superslab_goes_on_in_the_next();
    what_is_missing_behind_a_run_is_mapped();
    nothing_is_mapped_where_the_run_could_not_go_on();
    every_address_of_a_grown_run_leads_to_it();
    return 0;
}
