// Threads that end: none of their blocks is lost, and what they leave is used again.
#include "cache/thread.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../census.h"
#include "base/options.h"
#include "cache/ended.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/sweep.h"
#include "cache/world.h"
#include "owner/slabs.h"

enum { CLASS = 6, LARGER = 30, BLOCKS = 300, THREADS = 4, ROUNDS = 60 };

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
    struct hak_cache *other = new_thread();
    struct hak_cache *thread = new_thread();
    take_all();
    give_all(0, 100);
    hak_ended_bury(thread);
    UNIT_EQUAL(thread->owner.state, HAK_OWNER_DEAD);
    UNIT_CHECK(hak_run_of(held[100])->owner == &thread->owner); // for the next thread
    hak_ended_bury(other);                                      // one such cache is enough
    become(main_thread);
    for (unsigned i = 100; i < BLOCKS; i++) {
        UNIT_CHECK(hak_run_of(held[i])->owner == &hak_cache_shared.owner);
        UNIT_EQUAL(HAK_MAP_TAG(hak_map_entry(held[i])), hak_cache_shared.owner.tag);
    }
    census_check(held, BLOCKS);
}

static void whoever_needs_a_slab_takes_over_theirs(void)
{
    const size_t super_bytes = hak_arena.super_bytes - hak_arena.free_bytes;
    void *block = alloc(CLASS);
    UNIT_CHECK(hak_run_of(block)->owner == &main_thread->owner);
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
    hak_lock_take(&main_thread->owner.lock);
    hak_magazine_flush_all(main_thread);
    hak_lock_drop(&main_thread->owner.lock);
    UNIT_EQUAL(census_out(), 0);
    hak_sweep_everything();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
}

static void their_cache_goes_to_the_next_thread(void)
{
    struct hak_cache *thread = new_thread();
    const uint32_t count = hak_registry.count;
    take_all();
    hak_ended_bury(thread);
    UNIT_CHECK(new_thread() == thread);
    UNIT_EQUAL(hak_registry.count, count);
    UNIT_EQUAL(thread->owner.state, HAK_OWNER_LIVE);
    UNIT_EQUAL(thread->exit_rounds, 0);
    // Other threads now own blocks of its earlier life.
    give_all(0, BLOCKS);
    census_check(held, BLOCKS);
    hak_ended_bury(thread);
    become(main_thread);
    census_check(held, BLOCKS);
    hak_sweep_everything();
    UNIT_EQUAL(census_out(), 0);
}

// With a sweeper, a cache stays whole for the next thread: blocks in magazines, slabs, tag.
static void a_dead_cache_stays_whole(void)
{
    hak_options.purger = 1;
    struct hak_cache *thread = new_thread();
    take_all();
    give_all(0, 50);
    void *const last = held[50];
    give(held[50]);
    held[50] = NULL;
    hak_ended_bury(thread);
    UNIT_CHECK(hak_run_of(held[60])->owner == &thread->owner);
    census_check(held, BLOCKS);
    UNIT_CHECK(new_thread() == thread);
    UNIT_CHECK(!thread->owner.is_whole);
    UNIT_CHECK(alloc(CLASS) == last);
    give(last);
    hak_ended_bury(thread);
    become(main_thread);
}

// Continues from there. Only a thread that allocates the class reclaims slabs.
static void who_frees_a_block_of_the_dead_takes_the_slab_over(void)
{
    struct hak_cache *dead = hak_cache_of(hak_run_of(held[60])->owner);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        main_thread->magazines[size_class].is_refilled = false;
    }
    give(held[60]); // goes into a parcel
    held[60] = NULL;
    UNIT_CHECK(hak_run_of(held[61])->owner == &dead->owner);
    hak_lock_take(&main_thread->owner.lock);
    hak_remote_post_all(main_thread);
    hak_lock_drop(&main_thread->owner.lock);
    main_thread->magazines[CLASS].is_refilled = true;
    give(held[61]);
    UNIT_CHECK(hak_run_of(held[61])->owner == &main_thread->owner);
    held[61] = NULL;
    census_check(held, BLOCKS);
    // A parcel on its way to the dead cache is sent on.
    hak_sweep_everything();
    census_check(held, BLOCKS);
    give_all(0, BLOCKS);
    census_check(held, BLOCKS);
}

static void who_begins_with_a_block_of_the_dead_gets_their_cache(void)
{
    struct hak_cache *first = new_thread();
    take_all();
    struct hak_cache *second = new_thread();
    void *block = alloc(CLASS);
    hak_ended_bury(first);
    hak_ended_bury(second); // it died last, and would be the next to be reused
    hak_cache_self = &hak_cache_nobody;
    give(held[0]);
    held[0] = NULL;
    UNIT_CHECK(hak_cache_self == first);
    give_all(0, BLOCKS);
    give(block);
    hak_ended_bury(first);
    become(main_thread);
    census_check(held, BLOCKS);
}

static void too_many_dead_are_broken_up(void)
{
    struct hak_cache *threads[THREADS];
    hak_sweep_everything();
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = new_thread();
        held[i] = alloc(CLASS);
    }
    unsigned whole = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        hak_ended_bury(threads[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        whole += threads[i]->owner.is_whole;
    }
    UNIT_EQUAL(whole, hak_os_processors());
    become(main_thread);
    census_check(held, THREADS);
    while (hak_reclaim_break_up_some() > 0) {
        continue;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_CHECK(!threads[i]->owner.is_whole);
        UNIT_CHECK(hak_run_of(held[i])->owner == &hak_cache_shared.owner);
    }
    give_all(0, THREADS);
    hak_sweep_everything();
    hak_options.purger = 0;
}

// A fork comes when a thread's cache has ended but does not yet wait for another thread: the child has neither the thread nor
// another one that would complete the step.
static void a_cache_that_was_ending_waits_in_the_child(void)
{
    become(main_thread);
    struct hak_cache *thread = new_thread();
    held[0] = alloc(CLASS);
    thread->owner.state = HAK_OWNER_DEAD;
    thread->owner.is_whole = true;
    hak_registry.whole++;
    become(main_thread);
    const uint32_t whole = hak_registry.whole;
    hak_world_lock();         // as fork's hooks do where the C library knows of threads
    hak_fake.is_alone = true; // so that the hooks do not do it again
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        hak_world_unlock_in_child();
        const bool waits = hak_list_is_linked(&thread->dead_link) && hak_registry.whole == whole;
        _exit(waits && hak_registry_get(HAK_ROLE_THREAD, thread) == thread ? 0 : 1);
    }
    hak_world_unlock();
    int status = 1;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    UNIT_EQUAL(status, 0);
    become(thread);
    give(held[0]);
    held[0] = NULL;
    hak_ended_bury(thread);
    become(main_thread);
}

static void what_a_thread_had_kept_or_not_sent_goes_with_it(void)
{
    become(main_thread);
    take_all();
    bool zeroed;
    void *large = hak_large_alloc(HAK_KIB(50), 1, 0, &zeroed);
    struct hak_cache *other = new_thread();
    struct hak_cache *thread = new_thread();
    give(large);
    give_all(0, 40); // less than a parcel, but worth sending
    hak_ended_bury(thread);
    UNIT_CHECK(main_thread->owner.inbox != NULL);
    UNIT_CHECK(hak_run_of(large) != NULL); // for the next thread
    hak_ended_bury(other);                 // one such cache is enough
    UNIT_CHECK(hak_run_of(large) == NULL);
    become(main_thread);
    census_check(held, BLOCKS);
    give_all(40, BLOCKS);
    hak_sweep_everything();
}

// After its cache has ended, a thread still allocates straight from slabs and frees straight into them.
static void late_frees_and_allocations_work(void)
{
    become(main_thread);
    take_all();
    become(&hak_cache_shared);
    void *late = alloc(CLASS);
    UNIT_CHECK(late != NULL);
    give_all(0, BLOCKS);
    give(late);
    become(main_thread);
    census_check(held, BLOCKS);
    hak_sweep_everything();
}

static bool orphans_give(struct hak_cache *cache, unsigned size_class)
{
    hak_lock_take(&cache->owner.lock);
    struct hak_run *slab = hak_reclaim_slab(cache, size_class);
    if (slab != NULL) {
        hak_slabs_list(&cache->owner, slab);
    }
    hak_lock_drop(&cache->owner.lock);
    return slab != NULL;
}

// The orphans' lock is taken by a thread that may get a slab from them, and not because of other classes: each taking is an event.
static void orphans_are_asked_for_what_they_have(void)
{
    struct hak_cache *thread = new_thread();
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i] = alloc(LARGER);
    }
    void *other = alloc(CLASS);
    hak_ended_bury(thread);
    while (hak_reclaim_break_up_some() > 0) {
        continue;
    }
    struct hak_cache *taker = new_thread();
    while (orphans_give(taker, LARGER)) {
        continue;
    }
    while (orphans_give(taker, CLASS)) {
        continue;
    }
    const uint64_t events = hak_cache_shared.owner.events;
    UNIT_CHECK(!orphans_give(taker, LARGER) && !orphans_give(taker, CLASS));
    UNIT_EQUAL(hak_cache_shared.owner.events, events);
    for (unsigned i = 0; i < BLOCKS / 2; i += 2) {
        UNIT_CHECK(hak_run_of(held[i])->owner ==
                   &hak_cache_shared.owner); // its slab has no free blocks
        give_all(i, i + 1);
    }
    UNIT_CHECK(hak_cache_shared.owner.inbox_bytes != 0); // their class is unknown
    UNIT_CHECK(orphans_give(taker, LARGER));
    UNIT_EQUAL(hak_cache_shared.owner.events, events + 1);
    become(main_thread);
    give(other);
    census_check(held, BLOCKS);
    for (unsigned i = 1; i < BLOCKS / 2; i += 2) {
        give_all(i, i + 1);
    }
    give_all(BLOCKS / 2, BLOCKS);
    hak_ended_bury(taker);
    hak_sweep_everything();
}

// Two threads at once: only the orphans' lock orders them, so ThreadSanitizer sees each look without it.
static pthread_barrier_t both;

static void *take_over(void *cache)
{
    become(cache);
    pthread_barrier_wait(&both);
    hak_lock_take(&hak_cache_self->owner.lock);
    struct hak_run *slab = hak_reclaim_slab(hak_cache_self, LARGER);
    UNIT_CHECK(slab != NULL);
    hak_slabs_list(&hak_cache_self->owner, slab);
    hak_lock_drop(&hak_cache_self->owner.lock);
    return slab;
}

static void two_take_over_slabs_at_once(void)
{
    struct hak_cache *thread = new_thread();
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i] = alloc(LARGER);
    }
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        give_all(i, i + 1);
    }
    hak_ended_bury(thread);
    while (hak_reclaim_break_up_some() > 0) {
        continue;
    }
    struct hak_cache *takers[2] = {new_thread(), new_thread()};
    pthread_t threads[2];
    void *taken[2];
    UNIT_EQUAL(pthread_barrier_init(&both, NULL, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, take_over, takers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_join(threads[i], &taken[i]), 0);
    }
    pthread_barrier_destroy(&both);
    UNIT_CHECK(taken[0] != taken[1]);
    become(main_thread);
    census_check(held, BLOCKS);
    for (unsigned i = 1; i < BLOCKS; i += 2) {
        give_all(i, i + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        become(takers[i]);
        hak_ended_bury(takers[i]);
    }
    become(main_thread);
    hak_sweep_everything();
}

// Real threads: each passes blocks on to the next one and ends. The contents stay.
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
    hak_lock_take(&main_thread->owner.lock);
    hak_magazine_flush_all(main_thread);
    hak_lock_drop(&main_thread->owner.lock);
    UNIT_EQUAL(census_out(), 0);
}

int main(void)
{
    hak_fake.processors = 2;
    hak_options.purger = 0;
    main_thread = new_thread();
    slabs_of_the_dead_are_orphans();
    whoever_needs_a_slab_takes_over_theirs();
    frees_after_the_end_arrive();
    their_cache_goes_to_the_next_thread();
    a_dead_cache_stays_whole();
    who_frees_a_block_of_the_dead_takes_the_slab_over();
    who_begins_with_a_block_of_the_dead_gets_their_cache();
    too_many_dead_are_broken_up();
    a_cache_that_was_ending_waits_in_the_child();
    what_a_thread_had_kept_or_not_sent_goes_with_it();
    late_frees_and_allocations_work();
    orphans_are_asked_for_what_they_have();
    two_take_over_slabs_at_once();
    many_lives_leave_nothing();
    hak_options.purger = 1;
    many_lives_leave_nothing();
    return 0;
}
