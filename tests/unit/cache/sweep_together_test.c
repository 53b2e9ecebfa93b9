// With option batch_madvise no system call purges less than 64 KiB: pages inside slabs and behind large blocks
// wait for others.
#include "cache/sweeper.h"

#include "../census.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/large.h"
#include "slab/purge.h"

enum { CLASS = 8, SLABS = 30, MOST_BLOCKS = 1 << 17, PAGES_ENOUGH = 16 };

static void *blocks[MOST_BLOCKS];
static size_t count;
static size_t batch;       // the number of the present one
static size_t batch_bytes; // purged by it so far
static size_t least_bytes = SIZE_MAX;

static void note(void *start, size_t bytes)
{
    (void)start;
    if (batch != hak_fake.purge_batches) {
        if (batch_bytes > 0 && batch_bytes < least_bytes) {
            least_bytes = batch_bytes;
        }
        batch = hak_fake.purge_batches;
        batch_bytes = 0;
    }
    batch_bytes += bytes;
}

// Free the blocks on the second page of a slab.
static void free_a_page(const struct hak_run *slab)
{
    const size_t page = hak_os_page_bytes();
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] == NULL || hak_run_of(blocks[i]) != slab) {
            continue;
        }
        const size_t offset = (size_t)((char *)blocks[i] - slab->base);
        if (offset < 2 * page && offset + hak_classes[CLASS].bytes > page) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
}

// A page of each of this many slabs.
static void free_a_page_each(unsigned slabs)
{
    static const struct hak_run *latest;
    for (size_t i = 0; i < count && slabs > 0; i++) {
        const struct hak_run *slab = blocks[i] != NULL ? hak_run_of(blocks[i]) : latest;
        if (slab > latest) { // the slabs are in the order of their addresses
            free_a_page(slab);
            latest = slab;
            slabs--;
        }
    }
    UNIT_EQUAL(slabs, 0);
}

static size_t swept_bytes(void)
{
    const size_t before = hak_fake.purged_bytes;
    hak_sweeper_wanted(HAK_MIB(64));
    UNIT_CHECK(hak_sweep_runs != 0);
    hak_sweeper_work();
    return hak_fake.purged_bytes - before;
}

static void pages_in_slabs_wait_until_they_are_enough(void)
{
    const size_t page = hak_os_page_bytes();
    count = SLABS * (size_t)hak_classes[CLASS].blocks;
    UNIT_CHECK(count <= MOST_BLOCKS);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = alloc(CLASS);
    }
    free_a_page_each(PAGES_ENOUGH / 2);
    UNIT_EQUAL(swept_bytes(), 0);
    UNIT_EQUAL(swept_bytes(), 0);
    free_a_page_each(PAGES_ENOUGH);
    UNIT_EQUAL(swept_bytes(), PAGES_ENOUGH * page);
    hak_options.batch_madvise = 0;
    UNIT_CHECK(swept_bytes() >=
               (PAGES_ENOUGH / 2 - 1) * page); // one by one; a block stays in the magazine
    hak_options.batch_madvise = 1;
    census_check(blocks, count);
}

int main(void)
{
    new_thread();
    census_have_sweeper();
    hak_options.batch_madvise = 1;
    hak_fake.on_purge = note;
    pages_in_slabs_wait_until_they_are_enough();
    UNIT_CHECK(least_bytes >= HAK_UNIT_BYTES && batch_bytes >= HAK_UNIT_BYTES);
    return 0;
}
