// When there is a sweeper, and when it ends. Its thread is run by hand here.
#include "cache/sweep.h"

#include "base/options.h"
#include "cache/large.h"
#include "census.h"

static void free_megabytes(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(8), 1, &zeroed);
    UNIT_CHECK(block != NULL);
    give(block);
}

// A vfork child has its parent's memory, but its threads are its own.
static void only_the_heaps_own_process_starts_one(void)
{
    hak_fake.process_id++;
    free_megabytes();
    UNIT_EQUAL(hak_fake.thread_starts, 0);
    UNIT_EQUAL(hak_sweep_runs, 0);
    hak_fake.process_id--;
    free_megabytes();
    UNIT_EQUAL(hak_fake.thread_starts, 1);
    hak_fake.work();
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_sweep_runs, 0);
}

static void a_forked_child_starts_its_own(void)
{
    hak_fake.process_id++;
    hak_sweep_lock();
    hak_sweep_unlock(true);
    free_megabytes();
    UNIT_EQUAL(hak_fake.thread_starts, 2);
    hak_fake.work();
}

int main(void)
{
    new_thread();
    only_the_heaps_own_process_starts_one();
    a_forked_child_starts_its_own();
    return 0;
}
