// Threads that end: nothing of theirs is lost, and what they leave is used again.
#include "cache/thread.h"

#include <pthread.h>

#include "base/options.h"
#include "cache/large.h"
#include "cache/sweep.h"
#include "census.h"

enum { CLASS = 6, BLOCKS = 300, THREADS = 4, ROUNDS = 60 };

static void *held[BLOCKS];
static struct hak_cache *main_thread;

static void take_all(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i] = alloc(CLASS);
        UNIT_CHECK(held[i] != NULL);
    }
}

static void give_all(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        give(held[i]);
        held[i] = NULL;
    }
}

static void slabs_of_the_dead_are_orphans(void)
{
    struct hak_cache *thread = new_thread();
    take_all();
    give_all(0, 100);
    hak_cache_end(thread);
    UNIT_EQUAL(thread->state, HAK_CACHE_DEAD);
    become(main_thread);
    for (unsigned i = 100; i < BLOCKS; i++) {
        UNIT_CHECK(hak_slab_of(held[i])->owner == &hak_orphans);
        UNIT_EQUAL(HAK_MAP_TAG(hak_map_entry(held[i])), hak_orphans.tag);
    }
    census_check(held, BLOCKS);
}

static void whoever_needs_a_slab_takes_over_theirs(void)
{
    const size_t super_bytes = hak_arena.super_bytes - hak_arena.free_bytes;
    void *block = alloc(CLASS);
    UNIT_CHECK(hak_slab_of(block)->owner == main_thread);
    UNIT_EQUAL(hak_arena.super_bytes - hak_arena.free_bytes, super_bytes); // no new slab
    give(block);
    census_check(held, BLOCKS);
}

static void frees_after_the_end_arrive(void)
{
    give_all(100, BLOCKS);
    census_check(held, BLOCKS);
    hak_sweep_everything();
    census_check(held, BLOCKS);
    UNIT_EQUAL(census_out(), 1); // one stays in the magazine
    hak_lock_take(&main_thread->lock);
    hak_magazine_flush_all(main_thread);
    hak_lock_drop(&main_thread->lock);
    UNIT_EQUAL(census_out(), 0);
    hak_sweep_everything();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
}

static void their_cache_goes_to_the_next_thread(void)
{
    struct hak_cache *thread = new_thread();
    const uint32_t count = hak_registry.count;
    take_all();
    hak_cache_end(thread);
    UNIT_CHECK(new_thread() == thread);
    UNIT_EQUAL(hak_registry.count, count);
    UNIT_EQUAL(thread->state, HAK_CACHE_LIVE);
    UNIT_EQUAL(thread->exit_rounds, 0);
    // Blocks of its earlier life are others' now.
    give_all(0, BLOCKS);
    census_check(held, BLOCKS);
    hak_cache_end(thread);
    become(main_thread);
    census_check(held, BLOCKS);
    hak_sweep_everything();
    UNIT_EQUAL(census_out(), 0);
}

static void what_a_thread_had_kept_or_not_sent_goes_with_it(void)
{
    become(main_thread);
    take_all();
    bool zeroed;
    void *large = hak_large_alloc(HAK_KIB(50), 1, &zeroed);
    struct hak_cache *thread = new_thread();
    give(large);
    give_all(0, 20); // less than a parcel
    hak_cache_end(thread);
    UNIT_CHECK(hak_slab_of(large) == NULL);
    UNIT_CHECK(main_thread->inbox != NULL);
    become(main_thread);
    census_check(held, BLOCKS);
    give_all(20, BLOCKS);
    hak_sweep_everything();
}

// After its cache's end a thread still allocates and frees, straight from and into slabs.
static void late_frees_and_allocations_work(void)
{
    become(main_thread);
    take_all();
    become(&hak_cache_late);
    void *late = alloc(CLASS);
    UNIT_CHECK(late != NULL);
    give_all(0, BLOCKS);
    give(late);
    become(main_thread);
    census_check(held, BLOCKS);
    hak_sweep_everything();
}

// Real threads: each passes blocks on to the next one and ends. Whatever was written is still there.
static void *_Atomic box[THREADS];

static void *life(void *argument)
{
    const size_t index = (size_t)argument;
    unsigned char *mine[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        mine[i] = alloc(i % 20);
        UNIT_CHECK(mine[i] != NULL);
        memset(mine[i], (int)i, hak_classes[i % 20].bytes);
        void *given = hak_swap_acq_rel(&box[(index + i) % THREADS], NULL);
        if (given != NULL) {
            give(given);
        }
        given = hak_swap_acq_rel(&box[i % THREADS], alloc(CLASS));
        if (given != NULL) {
            give(given);
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (size_t b = 0; b < hak_classes[i % 20].bytes; b++) {
            UNIT_EQUAL(mine[i][b], (unsigned char)i);
        }
        give(mine[i]);
    }
    return NULL;
}

static void many_lives_leave_nothing(void)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            UNIT_EQUAL(pthread_create(&threads[i], NULL, life, (void *)i), 0);
        }
        if (round % 2 == 0) {
            hak_sweep_everything();
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        void *in_boxes[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            in_boxes[i] = box[i];
        }
        census_check(in_boxes, THREADS);
    }
    become(main_thread);
    for (size_t i = 0; i < THREADS; i++) {
        give(hak_swap_acq_rel(&box[i], NULL));
    }
    UNIT_CHECK(hak_registry.count <= 2 * THREADS + 4);
    hak_sweep_everything();
    hak_lock_take(&main_thread->lock);
    hak_magazine_flush_all(main_thread);
    hak_lock_drop(&main_thread->lock);
    UNIT_EQUAL(census_out(), 0);
}

int main(void)
{
    hak_options.purger = 0;
    main_thread = new_thread();
    slabs_of_the_dead_are_orphans();
    whoever_needs_a_slab_takes_over_theirs();
    frees_after_the_end_arrive();
    their_cache_goes_to_the_next_thread();
    what_a_thread_had_kept_or_not_sent_goes_with_it();
    late_frees_and_allocations_work();
    many_lives_leave_nothing();
    return 0;
}
