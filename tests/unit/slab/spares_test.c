// pages: 16384 65536
// The descriptors of unmapped superslabs leave next to nothing, and serve the next superslabs. A thread that has found one
// before reads in it that none of its units is in use.
#include <sys/mman.h>

#include "../unit.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/superslabs.h"

enum { SUPERS = 1000, REAL_PAGE = 4096, DESCRIPTOR_PAGES = 2 };

static struct hak_run *runs[SUPERS];
static struct hak_super *supers[SUPERS];

static void take_all(void)
{
    for (unsigned i = 0; i < SUPERS; i++) {
        runs[i] = hak_runs_take(0, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
        UNIT_CHECK(runs[i] != NULL && runs[i]->state == HAK_RUN_LARGE && runs[i]->zeroed);
        supers[i] = hak_map_super(runs[i]->base);
        UNIT_EQUAL(supers[i]->base, runs[i]->base);
        UNIT_EQUAL(supers[i]->free_units, 0);
    }
    UNIT_EQUAL(hak_arena.super_bytes, SUPERS * (size_t)HAK_SUPER_BYTES);
}

static void give_all(void)
{
    for (unsigned i = 0; i < SUPERS; i++) {
        hak_runs_give(runs[i]);
    }
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    UNIT_EQUAL(hak_superslabs_trim(), SUPERS * (size_t)HAK_SUPER_BYTES);
}

static void expect_few_pages(void)
{
    size_t count = 0;
    for (unsigned i = 0; i < SUPERS; i++) {
        unsigned char there[DESCRIPTOR_PAGES];
        UNIT_EQUAL(mincore(supers[i], sizeof there * REAL_PAGE, there), 0);
        count += (there[0] & 1) + (there[1] & 1);
    }
    UNIT_CHECK(count <= SUPERS / 100);
}

static void expect_no_runs(void)
{
    for (unsigned i = 0; i < SUPERS; i++) {
        for (unsigned unit = 0; unit < HAK_SUPER_UNITS; unit++) {
            UNIT_EQUAL(supers[i]->slabs[unit].state, HAK_RUN_NONE);
        }
    }
}

static void spares_leave_little(void)
{
    size_t mapped_bytes = 0;
    for (unsigned turn = 0; turn < 4; turn++) {
        take_all();
        UNIT_CHECK(turn == 0 || hak_pool.mapped_bytes == mapped_bytes);
        mapped_bytes = hak_pool.mapped_bytes;
        hak_fake.refuse_purge = turn == 2; // they stay resident, and serve as well
        give_all();
        hak_fake.refuse_purge = false;
        if (turn != 2 && hak_os_page_bytes() == REAL_PAGE) {
            expect_few_pages();
        }
        expect_no_runs();
    }
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    spares_leave_little();
    return 0;
}
