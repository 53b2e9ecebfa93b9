// A cache that needs a slab takes one that another cache can spare, before the arena is asked.
#include <pthread.h>

#include "../census.h"
#include "base/options.h"
#include "cache/heap.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/sweep.h"
#include "owner/slabs.h"

enum { CLASS = 40, SLABS = 6, MOST = SLABS * 1024, THREADS = 4, ROUNDS = 12 };

static void *held[MOST];
static struct hak_cache *first;
static struct hak_cache *second;
static unsigned blocks; // in one slab

static size_t used_bytes(void)
{
    return hak_arena.super_bytes - hak_arena.free_bytes;
}

static void flush(struct hak_cache *cache)
{
    hak_lock_take(&cache->owner.lock);
    hak_magazine_flush_all(cache);
    hak_lock_drop(&cache->owner.lock);
}

static void give_if(unsigned index, bool condition)
{
    if (condition && held[index] != NULL) {
        give(held[index]);
        held[index] = NULL;
    }
}

static unsigned slabs_of(const struct hak_cache *cache)
{
    unsigned found = 0;
    const void *last = NULL;
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        const struct hak_run *slab = held[i] != NULL ? hak_run_of(held[i]) : NULL;
        found += slab != NULL && slab != last && slab->owner == &cache->owner;
        last = slab != NULL ? slab : last;
    }
    return found;
}

// All blocks of six slabs of the first cache, except one in `step`, are free and in their slabs.
static void first_has_free_blocks(unsigned step)
{
    become(first);
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        held[i] = alloc(CLASS);
        UNIT_CHECK(held[i] != NULL);
    }
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        give_if(i, i % step != 0);
    }
    flush(first);
    UNIT_EQUAL(slabs_of(first), SLABS);
}

static void all_is_given_back(void)
{
    become(first);
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        give_if(i, true);
    }
    hak_sweep_everything();
    flush(first);
    flush(second);
    hak_sweep_everything();
    UNIT_EQUAL(census_out(), 0);
    UNIT_EQUAL(used_bytes(), 0);
}

static void what_another_can_spare_is_taken(void)
{
    first_has_free_blocks(10);
    const size_t before = used_bytes();
    become(second);
    void *mine[MOST];
    unsigned count = 0;
    // As much as four of the five slabs can give.
    for (; count < 4 * (blocks - blocks / 10 - 1); count++) {
        mine[count] = alloc(CLASS);
        UNIT_CHECK(hak_run_of(mine[count])->owner == &second->owner);
    }
    UNIT_EQUAL(used_bytes(), before);
    // The slab that its owner takes from stays, however much others ask for.
    for (; count < 2 * SLABS * blocks; count++) {
        mine[count] = alloc(CLASS);
    }
    UNIT_EQUAL(slabs_of(first), 1);
    UNIT_EQUAL(slabs_of(second), SLABS - 1);
    while (count > 0) {
        give(mine[--count]);
    }
    all_is_given_back();
}

// A cache with a slab to spare now and then counts as one until the sweeper finds it without: the count that all threads share
// is not written with each slab. Nobody asks just to correct it.
static void who_had_slabs_to_spare_counts_until_the_next_sweep(void)
{
    first_has_free_blocks(10);
    UNIT_CHECK(hak_slabs_has_spare(&first->owner, CLASS));
    UNIT_CHECK(hak_slabs_are_spare(&second->owner, CLASS) &&
               !hak_slabs_are_spare(&first->owner, CLASS));
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        give_if(i, true);
    }
    flush(first);
    UNIT_CHECK(!hak_slabs_has_spare(&first->owner, CLASS) &&
               hak_slabs_are_spare(&second->owner, CLASS));
    hak_sweep_everything();
    UNIT_CHECK(!hak_slabs_are_spare(&second->owner, CLASS));
    all_is_given_back();
}

static void slabs_in_use_stay(void)
{
    first_has_free_blocks(1);
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        give_if(i, i % 8 == 0); // one in eight is free
    }
    flush(first);
    const size_t before = used_bytes();
    become(second);
    void *block = alloc(CLASS);
    UNIT_CHECK(used_bytes() > before);
    give(block);
    all_is_given_back();
}

// A heap that is destroyed frees all its slabs: it must hold nobody else's blocks, and nobody may hold its blocks.
static void heaps_neither_ask_nor_are_asked(void)
{
    first_has_free_blocks(10);
    const size_t before = used_bytes();
    struct hak_cache *heap = hak_heap_make();
    UNIT_CHECK(heap != NULL);
    become(heap);
    UNIT_CHECK(hak_run_of(alloc(CLASS))->owner == &heap->owner);
    UNIT_CHECK(used_bytes() > before);
    become(first);
    hak_heap_end(heap);
    all_is_given_back();
}

// Real threads that free each other's blocks, so that free ones gather where they are not needed.
static void *_Atomic box[MOST];

static void *life(void *argument)
{
    uint32_t random = 1 + (uint32_t)(size_t)argument;
    for (unsigned i = 0; i < ROUNDS * blocks; i++) {
        random = random * 1664525U + 1013904223U;
        unsigned char *mine = alloc(CLASS);
        UNIT_CHECK(mine != NULL);
        memset(mine, (int)i, hak_classes[CLASS].bytes);
        unsigned char *given =
            hak_swap_acq_rel(&box[(random >> 8) % (2 * blocks)], i % 4 != 0 ? mine : NULL);
        if (i % 4 == 0) {
            give(mine);
        }
        if (given != NULL) {
            for (size_t b = 1; b < hak_classes[CLASS].bytes; b++) {
                UNIT_EQUAL(given[b], given[0]);
            }
            give(given);
        }
    }
    return NULL;
}

static void threads_take_from_each_other(void)
{
    for (unsigned round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            UNIT_EQUAL(pthread_create(&threads[i], NULL, life, (void *)i), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        for (unsigned i = 0; i < 2 * blocks; i++) {
            held[i] = box[i];
        }
        census_check(held, 2 * blocks);
    }
    for (unsigned i = 0; i < 2 * blocks; i++) {
        box[i] = NULL;
    }
    all_is_given_back();
}

int main(void)
{
    hak_options.purger = 0;
    blocks = hak_classes[CLASS].blocks;
    UNIT_CHECK(blocks <= 1024);
    first = new_thread();
    second = new_thread();
    what_another_can_spare_is_taken();
    who_had_slabs_to_spare_counts_until_the_next_sweep();
    slabs_in_use_stay();
    heaps_neither_ask_nor_are_asked();
    threads_take_from_each_other();
    return 0;
}
