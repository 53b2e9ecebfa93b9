// The sweeper purges unused pages inside slabs, and in between lets a thread that waits for the
// cache's lock have it.
#include "cache/sweep.h"
#include "cache/sweeper.h"

#include "../census.h"
#include "base/options.h"

enum { CLASS = 8, SLABS = 100, MOST_BLOCKS = 1 << 18, AT_A_TIME = 8, RANGES = 2 };

static void *blocks[MOST_BLOCKS];
static struct hak_cache *cache;
static size_t purges_in_a_row;
static size_t most_in_a_row;

static void somebody_waits(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    if (cache->owner.lock.word == HAK_LOCK_HELD) {
        cache->owner.lock.word |= HAK_LOCK_WAITED;
    }
    purges_in_a_row++;
    most_in_a_row = purges_in_a_row > most_in_a_row ? purges_in_a_row : most_in_a_row;
}

static void it_gets_its_turn(void)
{
    UNIT_EQUAL(cache->owner.lock.word, HAK_LOCK_FREE);
    purges_in_a_row = 0;
}

// Neighbouring units are purged together, not slab by slab.
static void all_goes_back_in_few_calls(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] != NULL) {
            give(blocks[i]);
        }
    }
    const size_t before = hak_fake.purges;
    const size_t supers = hak_arena.super_bytes / HAK_SUPER_BYTES;
    hak_sweep_everything();
    UNIT_CHECK(hak_fake.purges - before <= 2 * supers && supers < SLABS / 8);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

int main(void)
{
    cache = new_thread();
    census_have_sweeper();
    const size_t a_slab = hak_classes[CLASS].blocks;
    const size_t count = SLABS * a_slab;
    UNIT_CHECK(count <= MOST_BLOCKS);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = alloc(CLASS);
    }
    for (size_t i = 0; i < count; i++) { // all blocks of each slab but one
        if (i % a_slab != a_slab / 2) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
    struct hak_super *super = hak_map_super(blocks[a_slab / 2]);
    super->huge_units = ~UINT64_C(0);
    hak_fake.on_purge = somebody_waits;
    hak_fake.on_wait = it_gets_its_turn;
    hak_sweeper_wanted(HAK_MIB(64));
    UNIT_CHECK(hak_sweep_runs != 0);
    hak_sweeper_work();
    const size_t slab_bytes = hak_classes[CLASS].units * HAK_UNIT_BYTES;
    // All but, in each slab, at most the two pages of its block, and the end that does not fill a page.
    UNIT_CHECK(hak_fake.purged_bytes >= (SLABS - 1) * (slab_bytes - 4 * hak_os_page_bytes()));
    UNIT_CHECK(most_in_a_row > 0 && most_in_a_row <= AT_A_TIME * RANGES);
    UNIT_CHECK(super->huge_units !=
               ~UINT64_C(0)); // or the kernel fills the holes in the background
    census_check(blocks, count);
    all_goes_back_in_few_calls(count);
    return 0;
}
