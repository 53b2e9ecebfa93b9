// In a program with one thread the thread that frees gives back: what exceeds the budget at once, and what has waited long enough.
#include "cache/due.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"

#include <pthread.h>

#include "../census.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/large.h"
#include "owner/watch.h"

#define MS UINT64_C(1000000)
// What may wait when little or nothing is in use.
#define WAITS HAK_MIB(6)

static void free_mib(size_t mib)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(mib), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    give(block);
}

// This many ticks of 100 ms, with one free in each.
static void pass(unsigned ticks)
{
    for (unsigned i = 0; i < ticks; i++) {
        hak_fake.now_ns += 100 * MS;
        hak_sweeper_wanted(0);
    }
}

static void what_is_over_the_budget_goes_at_once(void)
{
    free_mib(64);
    UNIT_CHECK(hak_arena.dirty_bytes <= WAITS);
    UNIT_EQUAL(hak_fake.thread_starts, 0);
    free_mib(1); // BigCache keeps it
    UNIT_CHECK(hak_bigcache_expire(hak_cache_self, UINT64_MAX) > 0);
    UNIT_CHECK(hak_arena.dirty_bytes + HAK_MIB(1) <= WAITS);
}

// A 64th of a large heap may wait.
static void a_large_heap_may_keep_more(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(512), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    free_mib(64);
    UNIT_CHECK(hak_arena.dirty_bytes <= HAK_MIB(8) && hak_arena.dirty_bytes > HAK_MIB(2));
    give(block);
    UNIT_CHECK(hak_arena.dirty_bytes <= WAITS);
}

static void what_is_old_goes_with_a_later_free(void)
{
    free_mib(1);
    free_mib(1);
    const size_t purges = hak_fake.purges;
    free_mib(1);
    UNIT_EQUAL(hak_fake.purges, purges); // its time has not come
    pass(30);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_bigcache_expire(hak_cache_self, UINT64_MAX), 0);
}

// 40 MiB each time, of which some may wait anyway. Of what is taken again, the first 16 MiB earn no budget, nor 16 in each second.
static void what_it_takes_again_stays(void)
{
    pass(100); // earlier swings are forgotten
    UNIT_EQUAL(hak_due_earned(), 0);
    free_mib(40);
    UNIT_CHECK(hak_arena.dirty_bytes <= HAK_MIB(40 - 16) + WAITS);
    for (unsigned i = 0; i < 4; i++) {
        free_mib(40);
    }
    const size_t purges = hak_fake.purges;
    free_mib(40);
    UNIT_EQUAL(hak_fake.purges, purges);
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(38));
    pass(40); // 48 MiB earn no budget any more, and what waited is old
    UNIT_EQUAL(hak_due_earned(), 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

// If the heap swings widely, keeping a part would save little, and the part would stay.
static void of_a_wide_swing_nothing_stays(void)
{
    for (unsigned i = 0; i < 100; i++) {
        free_mib(200);
        UNIT_CHECK(hak_arena.dirty_bytes <= WAITS);
    }
    pass(100);
}

// Some 10 MiB a second.
static void what_it_takes_again_slowly_is_paid_for(void)
{
    for (unsigned i = 0; i < 20; i++) {
        free_mib(16);
        UNIT_CHECK(hak_arena.dirty_bytes <= WAITS);
        pass(10);
        UNIT_EQUAL(hak_due_earned(), 0);
    }
}

// Blocks of 1,024 bytes, all but one in sixteen freed: slabs that stay get blocks back. Returns how many purges that takes.
static size_t purges_of_scattered(void)
{
    enum { CLASS = 31, BLOCKS = 20000 };
    static void *blocks[BLOCKS];
    UNIT_EQUAL(hak_classes[CLASS].bytes, 1024);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(CLASS);
    }
    const size_t before = hak_fake.purges;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 16 != 0) {
            give(blocks[i]);
        }
    }
    const size_t purges = hak_fake.purges - before;
    for (unsigned i = 0; i < BLOCKS; i += 16) {
        give(blocks[i]);
    }
    return purges;
}

static void what_may_wait_waits_inside_slabs_too(void)
{
    UNIT_CHECK(purges_of_scattered() > 0);
    hak_option_choose(&hak_options.dirty_bytes, HAK_GIB(1), HAK_FROM_MODE);
    UNIT_EQUAL(purges_of_scattered(), 0);
    hak_option_choose(&hak_options.dirty_bytes, HAK_MIB(2), HAK_FROM_MODE);
    hak_sweeper_wanted(0);
    UNIT_CHECK(hak_arena.dirty_bytes <= HAK_MIB(2));
}

// Locked memory is not tried again with each free.
static void a_refused_purge_is_tried_less_and_less(void)
{
    enum { FREES = 10000, TRIES = 7 * 16 }; // for each of 16 superslabs
    hak_fake.refuse_purge = true;
    free_mib(64);
    const size_t before = hak_fake.purges;
    for (unsigned i = 0; i < FREES; i++) {
        hak_fake.now_ns += MS;
        hak_sweeper_wanted(0);
    }
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(60));
    UNIT_CHECK(hak_fake.purges - before <= TRIES);
    hak_fake.refuse_purge = false;
    hak_fake.now_ns += 20000 * MS;
    free_mib(1);
    UNIT_CHECK(hak_arena.dirty_bytes <= WAITS);
}

static size_t purges_in(unsigned seconds)
{
    const size_t before = hak_fake.purges;
    pass(10 * seconds);
    return hak_fake.purges - before;
}

// Pages inside slabs, in a process that has run for an hour: for a minute the kernel refuses to purge them, and is asked less and
// less; then it accepts, and is asked soon.
static void refused_pages_inside_slabs_are_tried_less_and_less(void)
{
    enum { CLASS = 31, BLOCKS = 2000, TRIES = 8 };
    static void *blocks[BLOCKS];
    purges_in(3600);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(CLASS);
    }
    hak_fake.refuse_purge = true;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 16 != 0) {
            give(blocks[i]);
        }
    }
    const size_t of_one_try = purges_in(1);
    UNIT_CHECK(of_one_try > 0);
    UNIT_CHECK(purges_in(60) <= TRIES * of_one_try);
    hak_fake.refuse_purge = false;
    const size_t purged = hak_fake.purged_bytes;
    purges_in(70);
    UNIT_CHECK(hak_fake.purged_bytes - purged > HAK_MIB(1));
    for (unsigned i = 0; i < BLOCKS; i += 16) {
        give(blocks[i]);
    }
}

// As in the child of a fork that is in another time namespace.
static void a_clock_that_is_behind_is_waited_for_no_longer_than_a_tick(void)
{
    hak_sweeper_wanted(0);
    const uint64_t tick = hak_arena.tick;
    hak_fake.now_ns -= 50000 * MS;
    hak_sweeper_wanted(0);
    UNIT_EQUAL(hak_arena.tick, tick + 1);
    hak_sweeper_wanted(0);
    UNIT_EQUAL(hak_arena.tick, tick + 1);
    purges_in(1);
    UNIT_CHECK(hak_arena.tick > tick + 5);
    hak_fake.now_ns += 50000 * MS;
}

// A tick visits some caches, and the next one continues there: a pass visits each once.
static void many_caches_share_the_ticks(void)
{
    enum { THREADS = 150 };
    struct hak_cache *own = hak_cache_self;
    hak_options.purger = 0;
    struct hak_cache *others[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        others[i] = new_quiet_thread();
    }
    become(own);
    unsigned passes = 0;
    for (unsigned tick = 0; tick < 9; tick++) {
        unsigned looked = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            looked += others[i]->owner.idle_ticks;
        }
        hak_fake.now_ns += 100 * MS;
        hak_sweeper_wanted(0);
        unsigned now = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            now += others[i]->owner.idle_ticks;
        }
        UNIT_CHECK(now <= looked + 64);
        passes += hak_watch.unvisited == NULL;
    }
    UNIT_CHECK(passes >= 2);
}

// Callers tick in turn, and nothing else orders them here: ThreadSanitizer sees what one writes outside its turn.
static _Atomic(unsigned) turn;

struct caller {
    unsigned turn;
    struct hak_cache *cache;
    pthread_t thread;
};

static void *tick_in_turn(void *argument)
{
    const struct caller *caller = argument;
    become(caller->cache);
    while (hak_load_relaxed(&turn) != caller->turn) {
        continue;
    }
    hak_add_relaxed(&hak_fake.now_ns, 200000 * MS);
    hak_sweeper_wanted(0);
    hak_add_relaxed(&turn, 1);
    return NULL;
}

static void callers_take_turns(void)
{
    struct hak_cache *own = hak_cache_self;
    struct caller callers[2] = {{.turn = 0, .cache = new_thread()},
                                {.turn = 1, .cache = new_thread()}};
    become(own);
    for (unsigned i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_create(&callers[i].thread, NULL, tick_in_turn, &callers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_join(callers[i].thread, NULL), 0);
    }
    UNIT_EQUAL(turn, 2);
}

int main(void)
{
    new_thread();
    hak_fake.memory_bytes = HAK_GIB(16);
    what_is_over_the_budget_goes_at_once();
    a_large_heap_may_keep_more();
    what_is_old_goes_with_a_later_free();
    what_it_takes_again_stays();
    of_a_wide_swing_nothing_stays();
    what_it_takes_again_slowly_is_paid_for();
    a_refused_purge_is_tried_less_and_less();
    refused_pages_inside_slabs_are_tried_less_and_less();
    a_clock_that_is_behind_is_waited_for_no_longer_than_a_tick();
    many_caches_share_the_ticks();
    callers_take_turns();
    hak_options.purger = 1;
    what_may_wait_waits_inside_slabs_too();
    return 0;
}
