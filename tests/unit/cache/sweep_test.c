// When there is a sweeper, and when it ends. Its thread is run by hand here.
#include "cache/due.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"

#include "../census.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/large.h"
#include "cache/world.h"
#include "owner/watch.h"

#define MS UINT64_C(1000000)

static void free_megabytes(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(8), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    give(block);
}

// It starts with the second thread, and ends when only one thread is left.
static void two_threads_have_one(void)
{
    UNIT_EQUAL(hak_fake.thread_starts, 0);
    hak_sweeper_thread_came(false); // in a free, where no thread can be started
    UNIT_EQUAL(hak_fake.thread_starts, 0);
    hak_sweeper_thread_came(true);
    UNIT_EQUAL(hak_fake.thread_starts, 1);
    hak_sweeper_thread_left();
    UNIT_CHECK(hak_due_has_sweeper());
    hak_fake.now_ns += 1001 * MS;
    hak_sweeper_thread_left();
    UNIT_CHECK(!hak_due_has_sweeper() && hak_fake.work == NULL);
    hak_sweeper_thread_came(true);
    UNIT_EQUAL(hak_fake.thread_starts, 2);
    UNIT_EQUAL(hak_sweep_runs, 0); // it sleeps
    free_megabytes();
    UNIT_EQUAL(hak_sweep_runs, 1);
    hak_sweeper_work();
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_sweep_runs, 0);
}

// Its next malloc, or another thread's, starts it; but not that of a vfork child, where the thread would be the child's.
static void a_thread_that_begins_with_a_free_has_it_later(void)
{
    hak_fake.now_ns += 1001 * MS;
    hak_sweeper_thread_left();
    const size_t starts = hak_fake.thread_starts;
    hak_sweeper_thread_came(false);
    hak_fake.process_id = 2;
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts);
    hak_fake.process_id = 1;
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts + 1);
    UNIT_CHECK(hak_due_has_sweeper());
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts + 1);
}

// A thread that blocks signals may be in a handler that has interrupted the start of another thread.
static void it_is_put_off_where_signals_are_blocked(void)
{
    hak_fake.now_ns += 1001 * MS;
    hak_sweeper_thread_left();
    const size_t starts = hak_fake.thread_starts;
    hak_fake.blocks_signals = true;
    hak_sweeper_thread_came(true);
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts);
    hak_fake.blocks_signals = false; // another thread
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts + 1);
    hak_fake.now_ns += 1001 * MS;
    hak_sweeper_thread_left();
    hak_fake.blocks_signals = true;
    hak_sweeper_thread_came(true);
    UNIT_EQUAL(hak_fake.thread_starts, starts + 1);
    hak_fake.now_ns += 101 * MS; // longer than handlers take
    hak_sweeper_start_if_owed();
    UNIT_EQUAL(hak_fake.thread_starts, starts + 2);
    UNIT_CHECK(hak_due_has_sweeper());
    hak_fake.blocks_signals = false;
}

// Threads that come one after the other: if the sweeper did not live for long, not every thread starts it again.
static void short_lives_are_fewer_and_fewer(void)
{
    hak_sweeper_thread_left();
    const size_t starts = hak_fake.thread_starts;
    for (unsigned i = 0; i < 1000; i++) {
        hak_sweeper_thread_came(true);
        hak_sweeper_thread_left();
    }
    UNIT_CHECK(hak_fake.thread_starts >= starts + 4 && hak_fake.thread_starts <= starts + 12);
    UNIT_CHECK(!hak_due_has_sweeper());
    for (unsigned i = 0; i < 3; i++) {
        hak_sweeper_thread_came(true);
    }
    UNIT_CHECK(hak_due_has_sweeper()); // several threads at once
    hak_fake.now_ns += 1001 * MS;
    for (unsigned i = 0; i < 3; i++) {
        hak_sweeper_thread_left();
    }
    hak_sweeper_thread_came(true);
    UNIT_CHECK(hak_due_has_sweeper()); // the last one has lived for long
}

static void a_forked_child_has_none(void)
{
    hak_world_lock();
    hak_world_unlock_in_child();
    UNIT_CHECK(!hak_due_has_sweeper());
    const size_t starts = hak_fake.thread_starts;
    hak_sweeper_thread_came(true);
    UNIT_EQUAL(hak_fake.thread_starts, starts + 1);
}

// While the sweeper ends, another thread has kept a block, having seen before that the sweeper runs.
static bool was_kept_at_the_end;

static void keep_at_the_end(void)
{
    if (hak_sweep_runs == 0 && !was_kept_at_the_end) {
        bool zeroed;
        void *block = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
        UNIT_CHECK(block != NULL);
        const unsigned bin = hak_size_class_bin(HAK_MIB(2));
        hak_bigcache_put(hak_bigcache_place(hak_cache_self, bin), block, bin, hak_map_place(block));
        hak_watch_note(&hak_cache_self->owner);
        was_kept_at_the_end = true;
    }
}

static void what_is_kept_at_the_end_is_given_back(bool refuse_barrier)
{
    was_kept_at_the_end = false;
    hak_fake.refuse_barrier = refuse_barrier;
    hak_fake.on_barrier = refuse_barrier ? NULL : keep_at_the_end;
    hak_fake.on_wait = refuse_barrier ? keep_at_the_end : NULL;
    free_megabytes();
    hak_sweeper_work();
    UNIT_CHECK(was_kept_at_the_end);
    UNIT_EQUAL(hak_arena.super_bytes, hak_arena.free_bytes);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    UNIT_EQUAL(hak_sweep_runs, 0);
    hak_fake.refuse_barrier = false;
    hak_fake.on_barrier = NULL;
    hak_fake.on_wait = NULL;
}

// A block that is kept later finds that it does not run.
static void what_is_kept_after_the_end_wakes_it(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
    UNIT_EQUAL(hak_sweep_runs, 0);
    UNIT_CHECK(block != NULL && hak_large_keep(hak_cache_self, block));
    UNIT_EQUAL(hak_sweep_runs, 1);
    hak_sweeper_work();
    UNIT_EQUAL(hak_arena.super_bytes, hak_arena.free_bytes);
}

// In a program that has locked its memory, the sweeper does not wake ten times a second for nothing.
static void what_is_locked_in_memory_ends_it(void)
{
    const uint64_t tick = hak_arena.tick;
    hak_fake.refuse_purge = true;
    free_megabytes();
    hak_sweeper_work();
    UNIT_EQUAL(hak_sweep_runs, 0);
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(8));
    UNIT_CHECK(hak_arena.tick - tick < 100);
    hak_fake.refuse_purge = false;
    free_megabytes(); // it goes on when memory is no longer locked
    hak_sweeper_work();
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

static void switch_off(void)
{
    hak_options.purger = 0;
}

static void switched_off_it_ends_at_once(void)
{
    free_megabytes();
    hak_fake.on_wait = switch_off;
    const uint64_t tick = hak_arena.tick;
    hak_sweeper_work();
    hak_fake.on_wait = NULL;
    UNIT_EQUAL(hak_arena.tick, tick);
    UNIT_EQUAL(hak_sweep_runs, 0);
    UNIT_CHECK(hak_arena.dirty_bytes > 0);
    free_megabytes();
    UNIT_EQUAL(hak_sweep_runs, 0);
    hak_options.purger = 1;
    hak_sweep_everything();
}

// Where no thread may be started, not every thread that comes tries again.
static void a_refused_start_is_not_tried_again_at_once(void)
{
    enum { THREADS = 100, TRIES = 6 };
    hak_sweeper_thread_left();
    UNIT_CHECK(!hak_due_has_sweeper());
    const size_t starts = hak_fake.thread_starts;
    hak_fake.refuse_thread = true;
    for (unsigned i = 0; i < THREADS; i++) {
        hak_sweeper_thread_came(true);
    }
    UNIT_EQUAL(hak_fake.thread_starts - starts, TRIES); // after 1, 2, 4, 8 … more threads
    free_megabytes(); // meanwhile the thread that frees gives back
    UNIT_CHECK(hak_arena.dirty_bytes <= HAK_MIB(4));
    hak_fake.refuse_thread = false;
    for (unsigned i = 0; i < THREADS; i++) {
        hak_sweeper_thread_came(true);
    }
    UNIT_CHECK(hak_due_has_sweeper());
    free_megabytes();
    hak_sweeper_work();
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

static uint64_t ticks_left;

static void end_after_some_ticks(void)
{
    hak_options.purger = --ticks_left > 0;
}

// What still waits after this many ticks, when it could wait for an hour.
static size_t waiting_after(uint64_t ticks, enum hak_urgency urgency)
{
    ticks_left = ticks;
    hak_due_urge(urgency);
    hak_fake.on_wait = end_after_some_ticks;
    hak_sweeper_work();
    hak_fake.on_wait = NULL;
    hak_options.purger = 1;
    hak_due_urge(HAK_URGENCY_NONE);
    return hak_arena.dirty_bytes;
}

static void urgent_free_pages_do_not_wait(void)
{
    hak_options.decay_ms = 3600000;
    free_megabytes();
    UNIT_CHECK(waiting_after(10, HAK_URGENCY_NONE) >= HAK_MIB(8));
    free_megabytes();
    UNIT_EQUAL(waiting_after(10, HAK_URGENCY_FREE), 0);
}

// A block that BigCache keeps is more likely to be reused.
static void more_urgent_kept_blocks_do_not_either(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL && hak_large_keep(hak_cache_self, block));
    waiting_after(10, HAK_URGENCY_FREE);
    UNIT_EQUAL(hak_arena.super_bytes - hak_arena.free_bytes, HAK_MIB(2));
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(HAK_MIB(2))) == block);
    UNIT_CHECK(hak_large_keep(hak_cache_self, block));
    UNIT_EQUAL(waiting_after(10, HAK_URGENCY_KEPT), 0);
    UNIT_EQUAL(hak_arena.super_bytes - hak_arena.free_bytes, 0);
    hak_options.decay_ms = 500;
}

static size_t waited_bytes; // at the start of the latest tick, before the sweeper was told to end

static void note_what_waits(void)
{
    waited_bytes = hak_arena.dirty_bytes;
    end_after_some_ticks();
}

static size_t waited_for(uint64_t ticks)
{
    ticks_left = ticks;
    hak_fake.on_wait = note_what_waits;
    hak_sweeper_work();
    hak_fake.on_wait = NULL;
    hak_options.purger = 1;
    return waited_bytes;
}

// A heap that grows and shrinks in turn keeps its pages, however large it is.
static void what_was_in_use_lately_waits_beyond_the_budget(void)
{
    hak_options.decay_ms = 3600000;
    hak_option_choose(&hak_options.dirty_bytes, HAK_MIB(4), HAK_FROM_PROGRAM);
    free_megabytes();
    UNIT_EQUAL(waited_for(4), HAK_MIB(8));
    free_megabytes();
    UNIT_EQUAL(waited_for(12), HAK_MIB(4)); // over a second later
    hak_sweep_everything();
    hak_options.purger = 0; // without a sweeper, nothing notices that a peak is over
    free_megabytes();
    UNIT_EQUAL(hak_arena.dirty_bytes, HAK_MIB(4));
    hak_options.purger = 1;
    hak_option_choose(&hak_options.dirty_bytes, HAK_MIB(256), HAK_FROM_PROGRAM);
    hak_options.decay_ms = 500;
}

// A class of blocks of 4,096 bytes; three of four in its slabs are free.
enum { CLASS = 47, BLOCKS = 4096, TICKS = 60, MORE = 512 };
static void *blocks[BLOCKS];

static size_t purges_while_in_use(void)
{
    const struct hak_sweep_share all = {.caches = UINT_MAX, .lots = UINT_MAX};
    const size_t before = hak_fake.purges;
    void *more[MORE];
    for (unsigned tick = 0; tick < TICKS; tick += 2) {
        for (unsigned i = 0; i < MORE; i++) {
            more[i] = alloc(CLASS);
        }
        hak_sweep_tick(1, false, all);
        for (unsigned i = 0; i < MORE; i++) {
            give(more[i]);
        }
        hak_sweep_tick(1, false, all);
    }
    return hak_fake.purges - before;
}

// But not while the program takes much of it again.
static void a_class_in_use_gives_back_too(void)
{
    UNIT_EQUAL(hak_classes[CLASS].bytes, 4096);
    hak_store_relaxed(&hak_due_has_sweeper_thread, true);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(CLASS);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % 4 != 0) {
            give(blocks[i]);
        }
    }
    hak_due_note_again(HAK_GIB(1));
    UNIT_EQUAL(purges_while_in_use(), 0);
    hak_arena.tick += 100;
    hak_due_purge(0); // the bytes taken again no longer count
    UNIT_CHECK(purges_while_in_use() > BLOCKS / 8);
    for (unsigned i = 0; i < BLOCKS; i += 4) {
        give(blocks[i]);
    }
    hak_store_relaxed(&hak_due_has_sweeper_thread, false);
}

int main(void)
{
    new_thread();
    two_threads_have_one();
    a_thread_that_begins_with_a_free_has_it_later();
    it_is_put_off_where_signals_are_blocked();
    short_lives_are_fewer_and_fewer();
    a_forked_child_has_none();
    what_is_kept_at_the_end_is_given_back(false);
    what_is_kept_at_the_end_is_given_back(true);
    what_is_kept_after_the_end_wakes_it();
    what_is_locked_in_memory_ends_it();
    switched_off_it_ends_at_once();
    a_refused_start_is_not_tried_again_at_once();
    urgent_free_pages_do_not_wait();
    more_urgent_kept_blocks_do_not_either();
    what_was_in_use_lately_waits_beyond_the_budget();
    a_class_in_use_gives_back_too();
    return 0;
}
