// soak in: tsan
// How much an operation of the arena visits does not grow with the heap: among 1,000 superslabs it visits a few
// more than among 10, as the tree of gaps is higher.
#include "../unit.h"
#include "base/check.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/superslabs.h"

enum { FEW = 10, MANY = 1000, RUNS_MOST = HAK_SUPER_UNITS * MANY, MORE = 100 };

static struct hak_run *runs[RUNS_MOST];
static unsigned run_count;

static struct hak_run *take(unsigned units, unsigned align_units)
{
    struct hak_run *run =
        hak_runs_take(0, units * HAK_UNIT_BYTES, align_units, HAK_RUN_LARGE, false);
    UNIT_CHECK(run != NULL);
    return run;
}

static void fill(unsigned supers, unsigned units)
{
    hak_map.next_slot = 4000; // across the edges of blocks in the tree
    run_count = supers * (HAK_SUPER_UNITS / units);
    for (unsigned i = 0; i < run_count; i++) {
        runs[i] = take(units, 1);
    }
}

static void empty(void)
{
    for (unsigned i = 0; i < run_count; i++) {
        if (runs[i] != NULL) {
            hak_runs_give(runs[i]);
        }
    }
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    hak_superslabs_trim();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

// Each of these has a heap of this many superslabs, and returns how much one operation visited.

// A block of 0.5 MiB among others of its size, far behind the one before.
static size_t looks_of_a_pair(unsigned supers)
{
    size_t before = 0;
    fill(supers, 8);
    for (unsigned i = 0; i < run_count; i += run_count - 1) {
        before = hak_looks;
        hak_runs_give(runs[i]);
        runs[i] = take(8, 1);
    }
    const size_t looks = hak_looks - before;
    empty();
    return looks;
}

// No gap is long enough, then one is: behind the last superslab.
static size_t looks_of_a_long_run(unsigned supers)
{
    fill(supers, 1);
    for (unsigned i = 0; i < run_count; i += 2) { // every second unit
        hak_runs_give(runs[i]);
        runs[i] = NULL;
    }
    const size_t before = hak_looks;
    struct hak_run *run = take(200, 1);
    const size_t looks = hak_looks - before;
    hak_runs_give(run);
    empty();
    return looks;
}

// Long enough rows start everywhere but at an aligned place.
static size_t looks_of_an_aligned_run(unsigned supers, unsigned align_units)
{
    fill(supers, 2);
    for (unsigned i = 0; i < run_count; i++) {
        if (i % 4 == 1) { // units 2 and 3 of 8
            hak_runs_give(runs[i]);
            runs[i] = NULL;
        }
    }
    const size_t before = hak_looks;
    struct hak_run *run = take(1, align_units);
    const size_t looks = hak_looks - before;
    hak_runs_give(run);
    empty();
    return looks;
}

static size_t looks_at_whole_superslabs(unsigned supers)
{
    return looks_of_an_aligned_run(supers, HAK_SUPER_UNITS);
}

// A free of a large block when more waits than may: one superslab goes back, the one that waited longest.
static size_t looks_of_a_purge(unsigned supers)
{
    fill(supers, 64);
    for (unsigned i = 1; i < run_count; i++) {
        hak_arena.tick++;
        hak_runs_give(runs[i]);
        runs[i] = NULL;
    }
    const struct hak_super *first = HAK_LIST_ITEM(hak_arena.all.next, struct hak_super, all_link);
    const struct hak_super *oldest =
        HAK_LIST_ITEM(first->all_link.next, struct hak_super, all_link);
    const size_t before = hak_looks;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 200}, HAK_SUPER_BYTES), HAK_SUPER_BYTES);
    const size_t looks = hak_looks - before;
    UNIT_EQUAL(oldest->dirty_units, 0);
    empty();
    return looks;
}

// Everything dirty shares huge pages with units in use, and has to wait longer.
static size_t looks_of_a_purge_in_vain(unsigned supers)
{
    fill(supers, 16);
    for (unsigned i = 0; i < run_count; i += 2) {
        hak_map_super(runs[i]->base)->huge_units = ~UINT64_C(0);
        hak_runs_give(runs[i]);
        runs[i] = NULL;
    }
    const size_t before = hak_looks;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 200}, SIZE_MAX), 0);
    const size_t looks = hak_looks - before;
    for (unsigned i = 1; i < run_count; i += 2) {
        hak_map_super(runs[i]->base)->huge_units = 0;
    }
    empty();
    return looks;
}

static size_t looks_of_a_trim_in_vain(unsigned supers)
{
    fill(supers, 64);
    const size_t before = hak_looks;
    UNIT_EQUAL(hak_superslabs_trim(), 0);
    const size_t looks = hak_looks - before;
    empty();
    return looks;
}

static void check(size_t (*looks_of)(unsigned supers))
{
    const size_t few = looks_of(FEW);
    const size_t many = looks_of(MANY);
    printf("%zu looks with %d superslabs, %zu with %d\n", few, FEW, many, MANY);
    UNIT_CHECK(many <= few + MORE);
}

// The tree knows nothing of alignments below a superslab: a fixed number is visited, not each superslab.
static void other_alignments_are_bounded(void)
{
    const size_t thousand = looks_of_an_aligned_run(MANY, 4);
    const size_t half = looks_of_an_aligned_run(MANY / 2, 4);
    UNIT_CHECK(thousand <= half + MORE);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    check(looks_of_a_pair);
    check(looks_of_a_long_run);
    check(looks_at_whole_superslabs);
    check(looks_of_a_purge);
    check(looks_of_a_purge_in_vain);
    check(looks_of_a_trim_in_vain);
    other_alignments_are_bounded();
    return 0;
}
