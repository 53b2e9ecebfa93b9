// pages: 16384 65536
// Which memory asks for huge pages: the part of slabs that was handed out tells whether the heap is dense; so does the content of
// larger blocks, once they are old enough.
#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "owner/owner.h"
#include "slab/arena.h"
#include "slab/huge_pages.h"
#include "slab/mapping.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

enum { SLABS = 4 * HAK_SUPER_UNITS, TAG = 0x500 };

static struct hak_owner owner; // only its address counts
static struct hak_run *slabs[SLABS];

static void time_passes(void)
{
    hak_fake.now_ns += UINT64_C(1000000000);
    hak_arena_read_clock();
}

// Slabs of which the program holds this part of the blocks.
static void make_slabs(unsigned size_class, unsigned blocks)
{
    static void *taken[4096];
    for (unsigned i = 0; i < SLABS; i++) {
        slabs[i] = hak_slab_make(&owner, TAG, size_class);
        UNIT_CHECK(slabs[i] != NULL);
        UNIT_EQUAL(hak_slab_take(slabs[i], taken, blocks), blocks);
        for (unsigned k = 0; k < blocks; k++) {
            hak_slab_put(slabs[i], taken[k]);
        }
    }
}

static void end_slabs(void)
{
    for (unsigned i = 0; i < SLABS; i++) {
        hak_slab_end(slabs[i]);
    }
    hak_superslabs_trim();
    time_passes();
}

static unsigned class_of(size_t bytes)
{
    unsigned size_class = 0;
    while (hak_classes[size_class].bytes < bytes) {
        size_class++;
    }
    return size_class;
}

// No page has content: what counts is how far a slab was handed out, at once, whatever was freed since.
static void blocks_up_to_a_page_count_when_they_are_handed_out(void)
{
    const size_t sizes[] = {16, 512, 4096};
    hak_fake.resident_bytes = 0;
    for (unsigned i = 0; i < 3; i++) {
        const unsigned size_class = class_of(sizes[i]);
        const unsigned blocks = hak_classes[size_class].blocks;
        make_slabs(size_class, blocks);
        UNIT_CHECK(hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
        end_slabs();
        make_slabs(size_class, blocks / 8);
        UNIT_CHECK(!hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
        end_slabs();
    }
}

// The program may have written little of larger blocks: their content counts.
static void larger_blocks_count_by_what_is_in_them(void)
{
    const unsigned size_class = class_of(5120);
    hak_fake.resident_bytes = SIZE_MAX;
    make_slabs(size_class, hak_classes[size_class].blocks);
    UNIT_CHECK(hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
    hak_fake.resident_bytes = 0;
    time_passes();
    UNIT_CHECK(!hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
    end_slabs();
}

// Free memory tells nothing; a heap that has become small is judged by what is left of it. With nothing left it counts as what it
// was.
static void free_superslabs_make_no_heap_sparse(void)
{
    const unsigned size_class = class_of(512);
    hak_fake.resident_bytes = 0;
    hak_options.huge_start_bytes = HAK_SUPER_BYTES;
    make_slabs(size_class, hak_classes[size_class].blocks);
    UNIT_CHECK(hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
    for (unsigned i = HAK_SUPER_UNITS; i < SLABS; i++) {
        hak_slab_end(slabs[i]);
    }
    time_passes();
    UNIT_CHECK(hak_huge_pages_wanted(HAK_UNIT_BYTES, false));
    for (unsigned i = 0; i < HAK_SUPER_UNITS; i++) {
        hak_slab_end(slabs[i]);
    }
    time_passes();
    UNIT_CHECK(hak_huge_pages_wanted(HAK_MIB(3), true));
    hak_superslabs_trim();
    hak_options.huge_start_bytes = HAK_MIB(8);
}

// Empty and young memory tells nothing.
static void a_large_block_is_taken_for_dense_in_a_small_heap(void)
{
    hak_fake.resident_bytes = 0;
    struct hak_run *run = hak_runs_take(0, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
    struct hak_run *mapping = hak_mapping_make(HAK_MIB(40), 1, false);
    UNIT_CHECK(run != NULL && mapping != NULL);
    hak_arena.part_bytes = HAK_MIB(64);
    UNIT_CHECK(hak_huge_pages_wanted(HAK_MIB(4), true));
    UNIT_CHECK(!hak_huge_pages_wanted(HAK_MIB(4), false)); // zeros are often not touched
    UNIT_CHECK(!hak_huge_pages_wanted(HAK_MIB(3), true));  // it could take more than twice as much
    UNIT_CHECK(!hak_huge_pages_wanted(HAK_MIB(24), true)); // the heap is no longer a small part
    time_passes();
    UNIT_CHECK(!hak_huge_pages_wanted(HAK_MIB(4), true)); // the block was not used
    hak_fake.resident_bytes = SIZE_MAX;
    time_passes();
    UNIT_CHECK(hak_huge_pages_wanted(HAK_MIB(4), false)); // they are used
    hak_mapping_end(mapping);
    hak_runs_give(run);
}

// The block counted as dense while nothing was known. As it grows, its content decides; else the kernel would use huge pages for
// the growth, too.
static void a_block_that_grows_and_is_sparse_asks_no_longer(void)
{
    hak_fake.resident_bytes = 0;
    hak_arena.part_bytes = HAK_MIB(64);
    const size_t asks = hak_fake.huge_asks;
    const size_t refusals = hak_fake.huge_refusals;
    struct hak_run *mapping =
        hak_mapping_make(HAK_MIB(40), 1, hak_huge_pages_wanted(HAK_MIB(40), true));
    UNIT_EQUAL(hak_fake.huge_asks, asks + 1);
    UNIT_CHECK(hak_mapping_resize(mapping, HAK_MIB(44)));
    UNIT_EQUAL(hak_fake.huge_refusals, refusals + 1);
    UNIT_CHECK(hak_mapping_resize(mapping, HAK_MIB(48)));
    UNIT_EQUAL(hak_fake.huge_refusals, refusals + 1); // it has no huge pages left to lose
    UNIT_EQUAL(hak_fake.huge_asks, asks + 1);
    hak_mapping_end(mapping);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_arena.grants_huge = true;
    hak_options.huge_start_bytes = HAK_MIB(8);
    a_block_that_grows_and_is_sparse_asks_no_longer(); // while nothing is known
    a_large_block_is_taken_for_dense_in_a_small_heap();
    blocks_up_to_a_page_count_when_they_are_handed_out();
    free_superslabs_make_no_heap_sparse();
    larger_blocks_count_by_what_is_in_them();
    return 0;
}
