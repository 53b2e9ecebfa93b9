// Threads that end together purge nothing themselves if the used part of their slabs fits into the budget: that is one
// page for each slab, not all of its units.
#include "../census.h"
#include "base/options.h"
#include "cache/cache.h"
#include "cache/ended.h"
#include "cache/start.h"

enum { THREADS = 64, CLASSES = 8 };

static struct hak_cache *threads[THREADS];
static void *blocks[THREADS][CLASSES];

static void start_one(unsigned number)
{
    threads[number] = new_thread();
    for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
        blocks[number][size_class] = alloc(size_class);
        UNIT_CHECK(blocks[number][size_class] != NULL);
    }
}

static void end_one(unsigned number)
{
    become(threads[number]);
    for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
        give(blocks[number][size_class]);
    }
    hak_cache_self = &hak_cache_shared;
    hak_ended_bury(threads[number]);
}

int main(void)
{
    hak_options.purger = 0; // so that each thread gives back when it ends, and no peak counts
    hak_options.dirty_bytes = HAK_MIB(8);
    hak_start_process();
    for (unsigned i = 0; i < THREADS; i++) {
        start_one(i);
    }
    UNIT_CHECK(hak_arena_used_bytes() >= HAK_MIB(32));
    for (unsigned i = 0; i < THREADS; i++) {
        end_one(i);
    }
    UNIT_CHECK(hak_arena_used_bytes() <=
               CLASSES * HAK_UNIT_BYTES); // the last thread's cache, for the next thread
    UNIT_CHECK(hak_arena.dirty_bytes > 0 && hak_arena.dirty_bytes <= HAK_MIB(8));
    UNIT_EQUAL(hak_fake.purges, 0);
    return 0;
}
