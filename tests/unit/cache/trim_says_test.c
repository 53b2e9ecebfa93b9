// malloc_trim reports what went back, including pages inside slabs that stay in use, and counts no byte twice.
#include "cache/sweep.h"

#include "../census.h"

enum { CLASS = 8, SLABS = 100, MOST_BLOCKS = 1 << 18 };

static void *blocks[MOST_BLOCKS];

static void give_but(size_t count, size_t kept_in_slab)
{
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] != NULL && i % hak_classes[CLASS].blocks != kept_in_slab) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
}

int main(void)
{
    new_thread();
    census_have_sweeper();
    const size_t count = SLABS * (size_t)hak_classes[CLASS].blocks;
    UNIT_CHECK(count <= MOST_BLOCKS);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = alloc(CLASS);
    }
    const size_t slab_bytes = hak_classes[CLASS].units * HAK_UNIT_BYTES;
    give_but(count, 7);
    size_t before = hak_fake.purged_bytes;
    const size_t inside = hak_sweep_everything();
    UNIT_CHECK(inside > SLABS * slab_bytes / 2);
    UNIT_EQUAL(inside, hak_fake.purged_bytes - before);
    give_but(count, SIZE_MAX);
    before = hak_fake.purged_bytes;
    const size_t rest = hak_sweep_everything();
    UNIT_CHECK(rest > 0 && rest <= hak_fake.purged_bytes - before);
    UNIT_CHECK(inside + rest <= SLABS * slab_bytes); // no more than there was
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    return 0;
}
