// with features
// What a refused request costs. If addresses are missing, purged pages help no request: none are purged
// then, but superslabs are released. If the control group has no room, pages are purged; if a limit stops a block from growing in
// place, only pages are. In the modes that check each block, threads that have done nothing since everything was given back are
// skipped.
#include <errno.h>

#include "base/options.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "held.h"
#include "os/refusal.h"
#include "owner/watch.h"
#include "secure/hardened.h"
#include "slab/runs.h"

enum { CLASS = 6, BLOCKS = 300, THREADS = 10 };

static size_t purged_for(int error)
{
    const uint64_t mark = hak_refusal_mark();
    const size_t before = hak_fake.purges;
    hak_refusal_note(error, HAK_GIB(1));
    hak_sweep_for_request(&(struct hak_sweep_retry){.mark = mark});
    return hak_fake.purges - before;
}

// A run of 2 MiB with dirty pages, in a superslab with another one in use.
static void leave_dirty(void)
{
    bool zeroed;
    void *stays = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    void *goes = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
    UNIT_CHECK(stays != NULL && goes != NULL);
    memset(goes, 1, HAK_MIB(2));
    hak_runs_give(hak_run_of(goes));
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(2));
}

static void pages_stay_when_addresses_are_missing(void)
{
    leave_dirty();
    UNIT_EQUAL(purged_for(ENOMEM), 0);
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(2));
    UNIT_CHECK(purged_for(HAK_REFUSED_BY_GROUP) > 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

static void superslabs_go(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(16), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    const size_t mapped = hak_fake.mapped_bytes;
    hak_runs_give(hak_run_of(block));
    UNIT_CHECK(purged_for(ENOMEM) <= 4); // for their descriptors
    UNIT_CHECK(hak_fake.mapped_bytes + HAK_MIB(12) <= mapped);
}

// Another request must not get the memory behind the block before the growth is tried again.
static void addresses_stay_where_a_block_is_to_grow(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(16), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    memset(block, 1, HAK_MIB(16));
    const size_t mapped = hak_fake.mapped_bytes;
    hak_runs_give(hak_run_of(block));
    UNIT_CHECK(purged_for(HAK_REFUSED_TO_GROW) > 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    hak_sweep_everything();
}

// Others may free after their turn, or where the request has already looked: then it looks once more.
static void what_others_free_meanwhile_is_looked_for(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    struct hak_sweep_retry retry = {.mark = hak_refusal_mark()};
    hak_sweep_for_request(&retry);
    hak_refusal_note(ENOMEM, HAK_GIB(1));
    UNIT_CHECK(!hak_sweep_may_help(&retry, HAK_KIB(100)));
    hak_runs_give(hak_run_of(block));
    UNIT_CHECK(hak_sweep_may_help(&retry, HAK_KIB(100)));
    hak_sweep_for_request(&retry);
    hak_refusal_note(ENOMEM, HAK_GIB(1));
    UNIT_CHECK(!hak_sweep_may_help(&retry, HAK_KIB(100)));
    take(CLASS, 1);
    free_newest(1);
    UNIT_CHECK(hak_sweep_may_help(&retry, HAK_KIB(100)));
    hak_sweep_everything();
}

static size_t barriers_of_all(void)
{
    const size_t before = hak_fake.barriers;
    hak_sweep_everything();
    return hak_fake.barriers - before;
}

// Each thread has blocks in its quarantine and its stocks, then none.
static void who_does_nothing_is_passed_over(void)
{
    struct hak_cache *threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = new_thread();
        take(CLASS, BLOCKS);
        free_newest(BLOCKS / 2);
        UNIT_CHECK(!hak_hook_is_bare(threads[i]));
    }
    barriers_of_all();
    barriers_of_all(); // what was on its way to another owner
    const size_t looked_at = hak_fake.calls;
    UNIT_EQUAL(barriers_of_all(), 0);
    UNIT_EQUAL(hak_fake.calls, looked_at);
    // One of them continues: it takes a block, or frees one, wherever its place in the ring is.
    become(threads[3]);
    take(CLASS, 1);
    UNIT_CHECK(!hak_hook_is_bare(threads[3]) && hak_hook_is_bare(threads[4]));
    const size_t of_one = barriers_of_all();
    UNIT_CHECK(of_one > 0 && of_one <= 8);
    UNIT_EQUAL(barriers_of_all(), 0);
    for (unsigned i = 0; i < HAK_QUARANTINE_BLOCKS; i++) {
        take(CLASS + 1, 1);
        free_newest(1);
    }
    UNIT_CHECK(!hak_hook_is_bare(threads[3]));
    UNIT_CHECK(barriers_of_all() > 0);
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_CHECK(hak_hook_is_bare(threads[i]));
    }
}

int main(void)
{
    hak_options.purger = 0; // the sweeper's thread would not run here
    hak_option_choose(&hak_options.zero_on_free, 1, HAK_FROM_PROGRAM);
    hak_option_choose(&hak_options.quarantine_bytes, 1 << 20, HAK_FROM_PROGRAM);
    hak_start_process();
    new_thread();
    hak_sweep_everything();
    pages_stay_when_addresses_are_missing();
    superslabs_go();
    addresses_stay_where_a_block_is_to_grow();
    what_others_free_meanwhile_is_looked_for();
    who_does_nothing_is_passed_over();
    return 0;
}
