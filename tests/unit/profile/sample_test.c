// A sampled block that grows: with memory it becomes a sample of its new size, without memory it stays one of its old size.
#include "profile/sample.h"

#include <errno.h>

#include "../unit.h"
#include "base/bits.h"
#include "base/options.h"
#include "hakmem/hakmem.h"
#include "meta/table.h"
#include "profile/sampler.h"

// Of a slab, of a run of units, and of a mapping of its own; and a size that none of them can reach in place.
static const size_t sizes[] = {1000, HAK_KIB(100), HAK_LARGE_RUN_MAX + HAK_MIB(1)};
enum { SIZES = sizeof sizes / sizeof sizes[0] };
#define GROWN (2 * HAK_LARGE_RUN_MAX)

static void expect(unsigned samples, size_t bytes)
{
    UNIT_EQUAL(hak_samples.sample_count, samples);
    UNIT_EQUAL(hak_samples.live.samples, samples);
    UNIT_EQUAL(hak_samples.live.bytes, bytes);
}

static void a_refused_block_stays_a_sample(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        void *block = hak_malloc(sizes[i]);
        expect(1, sizes[i]);
        hak_fake.refuse_asks = true;
        errno = 0;
        UNIT_CHECK(hak_realloc(block, GROWN) == NULL);
        UNIT_EQUAL(errno, ENOMEM);
        hak_fake.refuse_asks = false;
        expect(1, sizes[i]);
        hak_free(block);
        expect(0, 0);
    }
}

static void a_grown_block_is_another_sample(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        hak_fake.refuse_remap = i == SIZES - 1; // in place
        void *block = hak_malloc(sizes[i]);
        void *grown = hak_realloc(block, GROWN);
        UNIT_CHECK(grown != NULL);
        expect(1, GROWN);
        grown = hak_realloc(grown, GROWN / 2);
        expect(1, GROWN / 2);
        void *other = hak_malloc(sizes[i]); // perhaps at the old block's address
        expect(2, GROWN / 2 + sizes[i]);
        hak_free(grown);
        expect(1, sizes[i]);
        hak_free(other);
        expect(0, 0);
    }
}

// The tables are there from the first sample on. Until there is memory for them, samples are dropped and counted.
static void without_memory_for_the_tables_samples_are_dropped(void)
{
    hak_store_relaxed(&hak_options.sample_bytes, 1);
    hak_sampler_kick();
    hak_fake.refuse_asks = true;
    for (unsigned i = 0; i < 10; i++) {
        void *block = hak_malloc(100); // each after the first, at the latest
        UNIT_CHECK(block != NULL);
        hak_free(block);
    }
    UNIT_CHECK(hak_samples.dropped_samples >= 9);
    UNIT_EQUAL(hak_samples.taken, hak_samples.dropped_samples);
    UNIT_CHECK(hak_table_find(&hak_samples.tables) == NULL);
    expect(0, 0);
    hak_fake.refuse_asks = false;
}

int main(void)
{
    hak_free(hak_malloc(1)); // this thread reads the options
    without_memory_for_the_tables_samples_are_dropped();
    hak_free(hak_malloc(HAK_MIB(8)));
    expect(0, 0);
    a_refused_block_stays_a_sample();
    a_grown_block_is_another_sample();
    return 0;
}
