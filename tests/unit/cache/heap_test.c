// pages: 16384 65536
// Heaps: all their blocks end with them, and no others.
#include <sys/wait.h>

#include "../census.h"
#include "base/timing.h"
#include "cache/bigcache.h"
#include "cache/dying.h"
#include "cache/ended.h"
#include "cache/heap.h"
#include "cache/large.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/sweep.h"
#include "cache/world.h"

enum { CLASS = 5, BLOCKS = 500 };

static void *held[BLOCKS];

static struct hak_cache *make(void)
{
    struct hak_cache *heap = hak_heap_make();
    UNIT_CHECK(heap != NULL);
    return heap;
}

static void fill(struct hak_cache *heap)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i] = hak_heap_take(heap, CLASS, (struct hak_request){1, 1, NULL});
        UNIT_CHECK(held[i] != NULL && hak_run_of(held[i])->owner == &heap->owner);
        memset(held[i], 1, hak_classes[CLASS].bytes);
    }
}

static void forget_held(void)
{
    memset(held, 0, sizeof held);
}

static void its_blocks_end_with_it(void)
{
    struct hak_cache *heap = make();
    fill(heap);
    census_check(held, BLOCKS);
    const void *one = held[0];
    hak_heap_end(heap);
    forget_held();
    UNIT_CHECK(hak_run_of(one) == NULL);
    census_check(held, BLOCKS);
    UNIT_EQUAL(census_out(), 0);
}

static void blocks_on_their_way_back_are_forgotten(void)
{
    struct hak_cache *heap = make();
    fill(heap);
    for (unsigned i = 0; i < 100; i++) { // one parcel is sent, another is being filled
        give(held[i]);
        held[i] = NULL;
    }
    census_check(held, BLOCKS);
    hak_heap_end(heap);
    forget_held();
    census_check(held, BLOCKS);
    // The same units under another owner: nothing from the old parcels may go into them.
    heap = make();
    fill(heap);
    hak_lock_take(&hak_cache_self->owner.lock);
    hak_remote_post_all(hak_cache_self);
    hak_lock_drop(&hak_cache_self->owner.lock);
    hak_lock_take(&heap->owner.lock);
    hak_remote_drain(heap, &heap->owner, HAK_REMOTE_ALL);
    hak_lock_drop(&heap->owner.lock);
    census_check(held, BLOCKS);
    hak_heap_end(heap);
    forget_held();
}

static void its_caches_are_used_again_by_heaps_only(void)
{
    struct hak_cache *heap = make();
    hak_heap_end(heap);
    struct hak_cache *thread = hak_registry_get(HAK_ROLE_THREAD, NULL);
    UNIT_CHECK(thread != heap);
    UNIT_CHECK(make() == heap);
    hak_ended_bury(thread);
    struct hak_cache *other = make();
    UNIT_CHECK(other != thread);
    hak_heap_end(other);
    hak_heap_end(heap);
}

static void its_large_blocks_end_with_it(void)
{
    struct hak_cache *heap = make();
    bool zeroed;
    const size_t free_units = hak_arena.super_bytes - hak_arena.free_bytes;
    void *kept = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    void *freed = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    void *ours = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    hak_large_belongs(kept, heap);
    hak_large_belongs(freed, heap);
    give(freed);
    give(ours);
    hak_heap_end(heap);
    UNIT_CHECK(hak_run_of(kept) == NULL);
    hak_bigcache_expire(hak_cache_self, 0);
    UNIT_EQUAL(hak_arena.super_bytes - hak_arena.free_bytes, free_units);
}

// As when another thread finds a misuse between a request's first look and its block.
static void a_dying_process_gives_it_no_blocks(void)
{
    struct hak_cache *heap = hak_heap_make();
    void *block = hak_dying_take((struct hak_request){HAK_MIB(1), HAK_MALLOC_ALIGNMENT, NULL});
    UNIT_CHECK(block != NULL);
    hak_large_belongs(block, heap);
    UNIT_CHECK(hak_list_is_empty(&heap->owner.larges));
    hak_heap_end(heap);
}

// Before a heap reports that memory is exhausted, all caches give back what they only keep.
static void what_others_keep_is_taken(void)
{
    struct hak_cache *heap = make();
    void *larges[4];
    bool zeroed;
    hak_sweep_everything();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
    for (unsigned i = 0; i < 4; i++) {
        larges[i] = hak_large_alloc(HAK_MIB(1), 1, 0, &zeroed);
    }
    UNIT_EQUAL(hak_arena.free_bytes, 0);
    UNIT_CHECK(hak_large_keep(hak_cache_self, larges[0]));
    hak_fake.refuse_asks = true;
    void *block = hak_heap_take(heap, CLASS, (struct hak_request){1, 1, NULL});
    UNIT_CHECK(block != NULL && hak_run_of(block)->owner == &heap->owner);
    hak_fake.refuse_asks = false;
    for (unsigned i = 1; i < 4; i++) {
        give(larges[i]);
    }
    hak_heap_end(heap);
}

static uint64_t refills_timed(void)
{
    uint64_t times = 0;
    for (unsigned step = 0; step < HAK_TIMING_STEPS; step++) {
        times += hak_load_relaxed(&hak_timings[HAK_TIMING_refill].times[step]);
    }
    return times;
}

// Every malloc from a heap takes the slow path: most find a block in the magazine, which is no refill.
static void its_mallocs_count_as_no_refills(void)
{
    struct hak_cache *heap = make();
    hak_store_relaxed(&hak_options.debug_timing, 1);
    fill(heap);
    hak_store_relaxed(&hak_options.debug_timing, 0);
    UNIT_EQUAL(refills_timed(), 0);
    hak_heap_end(heap);
    forget_held();
}

// A number too many would be another cache's, and each would take the other's blocks for its own. Ended caches' numbers are reused.
static void there_are_as_many_as_ids(void)
{
    const uint32_t count = hak_registry.count;
    enum { MORE = 8 }; // than have ended
    struct hak_cache *heaps[MORE] = {NULL};
    hak_registry.count = HAK_OWNERS_MOST - 1;
    unsigned made = 0;
    while (made < MORE && (heaps[made] = hak_heap_make()) != NULL) {
        UNIT_CHECK(hak_tag_is_heap(heaps[made]->owner.tag));
        made++;
    }
    UNIT_CHECK(made > 0 && made < MORE);
    UNIT_CHECK(hak_registry_get(HAK_ROLE_LONG, NULL) == NULL);
    hak_heap_end(heaps[0]);
    UNIT_CHECK(make() == heaps[0]);
    for (unsigned i = 0; i < made; i++) {
        hak_heap_end(heaps[i]);
    }
    hak_registry.count = count;
}

static struct hak_cache *watched;
static unsigned turns;
static unsigned unlocked_ends;

static void have_a_turn(void)
{
    turns += hak_load_relaxed(&watched->owner.lock.word) == HAK_LOCK_FREE;
}

static void look_at_lock(void *start, size_t bytes)
{
    (void)start;
    unlocked_ends += bytes == HAK_MIB(1024) &&
                     (hak_load_relaxed(&watched->owner.lock.word) & HAK_LOCK_HELD) == 0;
}

// Who wants all locks, as for statistics, waits for some slabs of a heap that ends, not for all, nor for its large blocks.
static void others_have_its_lock_meanwhile(void)
{
    enum { LARGEST = HAK_SMALL_CLASSES - 1, SLABS = 300 };
    bool zeroed;
    watched = make();
    const unsigned count = SLABS * (unsigned)hak_classes[LARGEST].blocks;
    for (unsigned i = 0; i < count; i++) {
        UNIT_CHECK(hak_heap_take(watched, LARGEST, (struct hak_request){1, 1, NULL}) != NULL);
    }
    hak_large_belongs(hak_large_alloc(HAK_MIB(1024), 1, 0, &zeroed), watched);
    hak_fake.on_wait = have_a_turn;
    hak_fake.on_unmap = look_at_lock;
    hak_store_relaxed(&watched->owner.lock.word, HAK_LOCK_WAITED); // by somebody who sleeps
    hak_heap_end(watched);
    hak_fake.on_wait = NULL;
    hak_fake.on_unmap = NULL;
    UNIT_CHECK(turns > 0);
    UNIT_EQUAL(unlocked_ends, 1);
}

static pid_t child;

// Another thread forks, behind the first slabs of the heap.
static void fork_here(void)
{
    if (child != 0 || hak_load_relaxed(&watched->owner.lock.word) != HAK_LOCK_FREE) {
        return;
    }
    UNIT_CHECK(hak_world_lock_to_fork());
    hak_fake.is_alone = true; // so that fork's hooks do not do it again
    child = fork();
    UNIT_CHECK(child >= 0);
    hak_fake.is_alone = false;
    if (child != 0) {
        hak_world_unlock();
        return;
    }
    const size_t slabs = watched->owner.slab_count;
    hak_world_unlock_in_child();
    hak_heap_end_forked(); // it goes on here, as behind a signal handler that has forked
    UNIT_EQUAL(watched->owner.slab_count, slabs);
    watched->ended_by = &slabs; // another thread
    hak_heap_end_forked();
    UNIT_EQUAL(census_out(), 0);
    UNIT_CHECK(hak_list_is_empty(&watched->owner.larges));
    UNIT_CHECK(slabs > 0 && make() == watched);
    _exit(0);
}

// The child of a fork has not the thread that ends a heap, so it ends what is left.
static void a_child_ends_what_is_left_of_it(void)
{
    enum { LARGEST = HAK_SMALL_CLASSES - 1, SLABS = 300 };
    bool zeroed;
    watched = make();
    for (unsigned i = 0; i < SLABS * (unsigned)hak_classes[LARGEST].blocks; i++) {
        UNIT_CHECK(hak_heap_take(watched, LARGEST, (struct hak_request){1, 1, NULL}) != NULL);
    }
    hak_large_belongs(hak_large_alloc(HAK_MIB(1), 1, 0, &zeroed), watched);
    hak_fake.on_wait = fork_here;
    hak_store_relaxed(&watched->owner.lock.word, HAK_LOCK_WAITED);
    hak_heap_end(watched);
    hak_fake.on_wait = NULL;
    int status = 1;
    UNIT_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    UNIT_EQUAL(status, 0);
    UNIT_CHECK(watched->ended_by == NULL);
}

int main(void)
{
    new_thread();
    its_mallocs_count_as_no_refills();
    its_blocks_end_with_it();
    blocks_on_their_way_back_are_forgotten();
    its_caches_are_used_again_by_heaps_only();
    its_large_blocks_end_with_it();
    a_dying_process_gives_it_no_blocks();
    what_others_keep_is_taken();
    others_have_its_lock_meanwhile();
    a_child_ends_what_is_left_of_it();
    there_are_as_many_as_ids();
    return 0;
}
