// A thread that waits for the sweep's lock, such as one that forks, waits until the sweeper or malloc_trim has visited some slabs
// of one cache, not all of them, nor all caches.
#include "cache/sweep.h"
#include "cache/sweeper.h"

#include "../census.h"
#include "base/options.h"
#include "owner/inbox.h"
#include "owner/watch.h"

enum { CLASS = 8, THREADS = 20, SLABS = 4, MOST_SLABS = 80, MOST_BLOCKS = 1 << 16 };

static void *blocks[MOST_BLOCKS];
static unsigned caches_at_once; // visited since the lock was last free
static unsigned most_at_once;
static unsigned ways; // how often it was free in the middle of a pass
static struct hak_owner *last;
static unsigned slabs_at_once; // likewise
static unsigned most_slabs_at_once;
static struct hak_run *last_slab;

static void somebody_waits(void *start, size_t bytes)
{
    (void)bytes;
    struct hak_owner *owner = hak_owner_of(start);
    if (hak_watch.lock.word == HAK_LOCK_HELD) {
        hak_watch.lock.word |= HAK_LOCK_WAITED;
    }
    struct hak_run *slab = owner != NULL ? hak_run_of(start) : NULL;
    slabs_at_once += slab != NULL && slab != last_slab;
    last_slab = slab;
    most_slabs_at_once = slabs_at_once > most_slabs_at_once ? slabs_at_once : most_slabs_at_once;
    caches_at_once += owner != NULL && owner != last;
    last = owner;
    most_at_once = caches_at_once > most_at_once ? caches_at_once : most_at_once;
}

static void it_gets_its_turn(void)
{
    if (hak_watch.lock.word == HAK_LOCK_FREE) {
        ways += hak_watch.unvisited != NULL;
        caches_at_once = 0;
        slabs_at_once = 0;
    }
}

// All blocks of each slab but one.
static size_t work_in_threads(size_t threads, size_t slabs)
{
    const size_t each = slabs * hak_classes[CLASS].blocks;
    UNIT_CHECK(threads * each <= MOST_BLOCKS);
    for (size_t thread = 0; thread < threads; thread++) {
        new_thread();
        for (size_t i = 0; i < each; i++) {
            blocks[thread * each + i] = alloc(CLASS);
        }
        for (size_t i = 0; i < each; i++) {
            if (i % hak_classes[CLASS].blocks != 7) {
                give(blocks[thread * each + i]);
                blocks[thread * each + i] = NULL;
            }
        }
    }
    return threads * each;
}

static void the_sweeper_makes_way(void)
{
    hak_sweeper_wanted(HAK_MIB(64));
    UNIT_CHECK(hak_sweep_runs != 0);
    hak_sweeper_work();
}

// The sweeper, another trim and the child of a fork come to caches that malloc_trim has not visited yet.
static void it_gets_its_turn_and_ticks(void)
{
    it_gets_its_turn();
    if (hak_watch.lock.word == HAK_LOCK_FREE && hak_watch.unvisited != NULL) {
        const struct hak_owner *left = hak_watch.unvisited;
        hak_sweep_tick(1, false, (struct hak_sweep_share){.caches = UINT_MAX, .lots = UINT_MAX});
        UNIT_CHECK(hak_sweep_is_any_kept());
        UNIT_CHECK(hak_watch.unvisited == left); // it is left to malloc_trim
    }
}

static void trim_makes_way(void)
{
    hak_fake.on_wait = it_gets_its_turn_and_ticks;
    hak_sweep_everything();
    UNIT_EQUAL(hak_watch.strips, 0);
}

static void give_all(size_t count)
{
    census_check(blocks, count);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] != NULL) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
}

// Nor at all slabs of that one.
static void it_waits_for_some_slabs(void)
{
    const size_t count = work_in_threads(1, MOST_SLABS);
    most_slabs_at_once = slabs_at_once = 0;
    hak_fake.on_purge = somebody_waits;
    hak_fake.on_wait = it_gets_its_turn;
    const size_t purged = hak_fake.purged_bytes;
    hak_sweep_everything();
    hak_fake.on_purge = NULL;
    hak_fake.on_wait = NULL;
    UNIT_CHECK(most_slabs_at_once > 0 && most_slabs_at_once <= 16);
    UNIT_CHECK(hak_fake.purged_bytes - purged > MOST_SLABS * HAK_UNIT_BYTES / 2);
    UNIT_EQUAL(hak_watch.strips, 0);
    give_all(count);
}

static struct hak_owner *busy;

static void its_thread_is_at_work(void *start, size_t bytes)
{
    (void)bytes;
    if (hak_owner_of(start) == busy) {
        hak_count(&busy->events, 1);
        hak_or_relaxed(&busy->lock.word, HAK_LOCK_WAITED);
    }
}

// A thread at work gets the lock of its cache in the middle of its inbox, and what is left there goes back, too.
static void it_comes_back_for_the_inbox(void)
{
    const size_t count = 4 * (size_t)hak_classes[CLASS].blocks;
    busy = &new_thread()->owner;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = alloc(CLASS);
    }
    new_thread();
    for (size_t i = 0; i < count; i++) {
        if (i % hak_classes[CLASS].blocks != 7) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
    UNIT_CHECK(!hak_inbox_is_empty(busy));
    hak_fake.on_purge = its_thread_is_at_work;
    hak_or_relaxed(&busy->lock.word, HAK_LOCK_WAITED);
    hak_sweep_everything();
    hak_fake.on_purge = NULL;
    UNIT_CHECK(hak_inbox_is_empty(busy));
    UNIT_EQUAL(hak_watch.strips, 0);
    give_all(count);
}

static void check(void (*sweep)(void))
{
    const size_t count = work_in_threads(THREADS, SLABS);
    most_at_once = ways = 0;
    hak_fake.on_purge = somebody_waits;
    hak_fake.on_wait = it_gets_its_turn;
    sweep();
    hak_fake.on_purge = NULL;
    hak_fake.on_wait = NULL;
    UNIT_EQUAL(most_at_once, 1);
    UNIT_CHECK(ways >= THREADS - 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0); // and the pass goes on to its end
    give_all(count);
}

int main(void)
{
    new_thread();
    census_have_sweeper();
    check(trim_makes_way);
    check(the_sweeper_makes_way);
    it_waits_for_some_slabs();
    it_comes_back_for_the_inbox();
    return 0;
}
