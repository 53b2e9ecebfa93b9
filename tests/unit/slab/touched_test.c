// pages: 16384 65536
// What waits to be purged of a slab that has ended is the part that was handed out, and what earlier users of its units touched;
// not all of its units.

#include "../unit.h"
#include "base/bits.h"
#include "owner/owner.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

enum { MOST_BLOCKS = 4096, TAG = 0x500 };

static struct hak_owner owner; // only its address counts

// A slab of which at most `count` blocks were handed out at a time comes and goes.
static void come_and_go(unsigned size_class, unsigned count)
{
    void *blocks[MOST_BLOCKS];
    struct hak_run *slab = hak_slab_make(&owner, TAG, size_class);
    UNIT_CHECK(slab != NULL);
    UNIT_EQUAL(hak_slab_take(slab, blocks, count), count);
    for (unsigned i = 0; i < count; i++) {
        hak_slab_put(slab, blocks[i]);
    }
    hak_slab_end(slab);
}

static size_t pages(size_t bytes)
{
    return hak_align_up(bytes, hak_os_page_bytes());
}

static void give_back(size_t expected)
{
    UNIT_EQUAL(hak_arena.dirty_bytes, expected);
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), expected);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_arena.is_locked, false);
}

static unsigned class_of_units(unsigned units)
{
    unsigned size_class = 0;
    while (hak_classes[size_class].units != units) {
        size_class++;
    }
    return size_class;
}

static void a_slab_leaves_what_was_handed_out(void)
{
    come_and_go(0, 1);
    give_back(pages(1));
    come_and_go(0, 1);
    come_and_go(0, hak_classes[0].blocks); // in the same unit
    come_and_go(0, 1);
    give_back(pages(hak_classes[0].blocks * (size_t)hak_classes[0].bytes));
    come_and_go(0, 1); // what was purged is not resident
    give_back(pages(1));
}

// A unit that was never touched does not wait: a purge of it alone would be a call for nothing.
static void a_unit_that_nobody_touched_is_clean(void)
{
    const unsigned size_class = class_of_units(4);
    const size_t bytes = pages(hak_classes[size_class].bytes);
    come_and_go(size_class, 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, bytes);
    struct hak_run *run = hak_runs_take(0, HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false); // the first
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    const size_t purges = hak_fake.purges;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), 0);
    UNIT_EQUAL(hak_fake.purges, purges);
    hak_runs_give(run);
    give_back(HAK_UNIT_BYTES);
}

static void a_large_block_leaves_all(void)
{
    come_and_go(0, 1);
    struct hak_run *run = hak_runs_take(0, HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    hak_runs_give(run);
    come_and_go(0, 1);
    give_back(HAK_UNIT_BYTES);
}

static void what_the_kernel_does_not_take_still_waits(void)
{
    come_and_go(0, 1);
    hak_fake.refuse_purge = true;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), 0);
    hak_fake.refuse_purge = false;
    give_back(pages(1));
}

// One touch makes a whole huge page resident.
static void a_huge_page_is_all_there(void)
{
    hak_superslabs_trim();
    hak_arena.grants_huge = true;
    hak_options.deterministic = 1; // without an examination of what is written
    hak_options.huge_start_bytes = 0;
    come_and_go(0, 1);
    give_back(HAK_SUPER_BYTES / 2);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    a_slab_leaves_what_was_handed_out();
    a_unit_that_nobody_touched_is_clean();
    a_large_block_leaves_all();
    what_the_kernel_does_not_take_still_waits();
    a_huge_page_is_all_there();
    return 0;
}
