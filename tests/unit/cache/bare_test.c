// If nothing was freed since the last refusal, a thread that is refused again visits no cache and makes no system call; a block
// that was freed since is taken, wherever it is.
#include "base/options.h"
#include "cache/ended.h"
#include "cache/heap.h"
#include "cache/large.h"
#include "cache/registry.h"
#include "cache/request.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "cache/sweep_cache.h"
#include "held.h"
#include "owner/slabs.h"
#include "owner/watch.h"

enum { CLASS = 6, TAKEN = 200, FREED = 20 };

static size_t calls_of_all(void)
{
    const size_t before = hak_fake.calls;
    hak_sweep_everything();
    return hak_fake.calls - before;
}

static bool is_bare(struct hak_cache *cache)
{
    hak_lock_take(&cache->owner.lock);
    const bool is_bare = hak_sweep_cache_is_bare(cache);
    hak_lock_drop(&cache->owner.lock);
    return is_bare;
}

static void nothing_is_left(void)
{
    for (struct hak_cache *cache = hak_registry.all; cache != NULL; cache = cache->next) {
        UNIT_CHECK(cache->owner.role == HAK_ROLE_HEAP || is_bare(cache));
    }
    UNIT_EQUAL(calls_of_all(), 0);
    UNIT_EQUAL(calls_of_all(), 0);
}

static void what_a_thread_has_freed_is_taken(void)
{
    free_newest(FREED);
    const size_t before = census_out();
    UNIT_CHECK(!is_bare(hak_cache_self));
    UNIT_CHECK(calls_of_all() > 0);
    UNIT_CHECK(census_out() < before);
    nothing_is_left();
}

// Also if the magazine holds as many blocks as before, but other ones.
static void what_it_has_taken_and_freed_is_taken(void)
{
    take(CLASS, FREED);
    free_newest(FREED - 1);
    UNIT_CHECK(calls_of_all() > 0);
    nothing_is_left();
}

static void what_others_have_freed_is_taken(void)
{
    struct hak_cache *owner = hak_cache_self;
    new_thread();
    free_newest(6 * FREED); // into parcels; at least a page of them
    UNIT_CHECK(!is_bare(hak_cache_self));
    const size_t calls = calls_of_all();
    UNIT_CHECK(calls + calls_of_all() > 0); // what is on its way arrives with the second request
    nothing_is_left();
    become(owner);
}

static void a_large_block_that_is_kept_is_taken(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL && hak_large_keep(hak_cache_self, block));
    hak_watch_note(&hak_cache_self->owner);
    UNIT_CHECK(calls_of_all() > 0);
    nothing_is_left();
}

static void a_thread_that_has_ended_is_taken_apart(void)
{
    struct hak_cache *owner = hak_cache_self;
    struct hak_cache *other = new_thread();
    take(CLASS + 1, FREED);
    free_newest(FREED);
    hak_cache_self = &hak_cache_shared;
    hak_options.purger = 1; // or the cache is broken up when the thread ends
    census_have_sweeper();
    hak_ended_bury(other);
    hak_options.purger = 0;
    UNIT_CHECK(!is_bare(other));
    UNIT_CHECK(calls_of_all() > 0);
    nothing_is_left();
    become(owner);
}

static void what_a_refill_has_left_is_taken(void)
{
    take(CLASS, 3); // more than the one block that was left
    UNIT_CHECK(!is_bare(hak_cache_self));
    UNIT_CHECK(calls_of_all() > 0);
    nothing_is_left();
}

// Slabs of a heap and of an ended thread, whose pages were purged and that have blocks to spare.
static void what_others_may_take_is_left(void)
{
    enum { COUNT = 3 * 1024 };
    static void *of_heap[COUNT];
    struct hak_cache *owner = hak_cache_self;
    struct hak_cache *heap = hak_heap_make();
    struct hak_cache *other = new_thread();
    for (unsigned i = 0; i < COUNT; i++) {
        const struct hak_request request = {.bytes = hak_classes[CLASS].bytes};
        of_heap[i] = hak_heap_take(heap, CLASS, request);
    }
    take(CLASS, COUNT);
    for (unsigned i = 0; i < COUNT; i += 2) {
        give(of_heap[i]);
        give(held_blocks[held_count - COUNT + i]);
        held_blocks[held_count - COUNT + i] = NULL;
    }
    hak_ended_bury(other);
    become(owner);
    calls_of_all();
    calls_of_all();
    UNIT_CHECK(hak_slabs_has_spare(&heap->owner, CLASS) &&
               hak_slabs_has_spare(&hak_cache_shared.owner, CLASS));
    UNIT_CHECK(is_bare(heap) && is_bare(&hak_cache_shared));
    nothing_is_left();
}

int main(void)
{
    hak_options.purger = 0; // the sweeper's thread would not run here
    hak_start_process();
    new_thread();
    take(CLASS, TAKEN);
    calls_of_all();
    calls_of_all();
    nothing_is_left();
    what_a_thread_has_freed_is_taken();
    what_it_has_taken_and_freed_is_taken();
    what_others_have_freed_is_taken();
    a_large_block_that_is_kept_is_taken();
    a_thread_that_has_ended_is_taken_apart();
    what_a_refill_has_left_is_taken();
    what_others_may_take_is_left();
    return 0;
}
