// Which caches the sweeper visits: those that are in use or have something to give back, however many exist or existed.
#include "cache/sweep.h"

#include "../census.h"
#include "base/options.h"
#include "cache/bigcache.h"
#include "cache/ended.h"
#include "cache/large.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/small.h"
#include "cache/steal.h"
#include "cache/sweeper.h"
#include "owner/slabs.h"

enum { CLASS = 8, THREADS = 300, EACH = 20, A_SLAB = 1 << 10, SLABS = 40, TICKS = 8 };

static void *held[THREADS][EACH];
static void *blocks[SLABS * A_SLAB];
static uint64_t ticks_left;

static void end_after_some_ticks(void)
{
    hak_options.purger = --ticks_left > 0;
}

static void tick(uint64_t ticks)
{
    ticks_left = ticks + 1; // the first wait comes before the first tick
    hak_fake.on_wait = end_after_some_ticks;
    hak_sweeper_work();
    hak_fake.on_wait = NULL;
    hak_options.purger = 1;
}

static unsigned watched(void)
{
    unsigned count = 0;
    for (struct hak_cache *cache = hak_registry.all; cache != NULL; cache = cache->next) {
        count += hak_load_relaxed(&cache->owner.is_watched);
    }
    return count;
}

static void start_sweeper(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(8), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    give(block);
    UNIT_CHECK(hak_sweep_runs != 0);
}

// The main thread's cache, and the sweeper's own.
enum { ALWAYS = 2 };

static void threads_that_ended_are_not_looked_at(void)
{
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = new_thread();
        for (unsigned j = 0; j < EACH; j++) {
            held[i][j] = alloc(CLASS);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        hak_ended_bury(threads[i]);
    }
    become(main_thread);
    tick(1); // one visit finds that nothing is left of the caches broken up at their end
    UNIT_CHECK(watched() <= ALWAYS + hak_fake.processors);
    tick(TICKS);
    UNIT_CHECK(watched() <= ALWAYS);
    for (unsigned i = 0; i < THREADS; i++) { // the next thread starts without magazines
        UNIT_EQUAL(threads[i]->started[0], 0);
        UNIT_EQUAL(threads[i]->seldom_calls, 0);
    }
    // Their blocks that are freed later go to the orphans.
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned j = 0; j < EACH; j++) {
            give(held[i][j]);
            held[i][j] = NULL;
        }
    }
    tick(TICKS);
    census_check(held[0], THREADS * EACH);
    UNIT_EQUAL(hak_cache_shared.owner.inbox_bytes, 0);
}

// Threads that sleep are not visited either; and the first call of each is noticed.
static void threads_that_sleep_wake_when_they_free(void)
{
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *sleeper = new_thread();
    for (unsigned j = 0; j < EACH; j++) {
        held[0][j] = alloc(CLASS);
    }
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(!sleeper->owner.is_watched && sleeper->is_asleep);
    census_check(held[0], EACH);
    become(sleeper);
    for (unsigned j = 0; j < EACH; j++) {
        give(held[0][j]);
        held[0][j] = NULL;
    }
    UNIT_CHECK(sleeper->owner.is_watched && !sleeper->is_asleep);
    UNIT_EQUAL(sleeper->hit_tag, sleeper->owner.tag);
    census_check(held[0], EACH);
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(!sleeper->owner.is_watched);
    become(sleeper); // a large block that the sleeper keeps
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(1), 1, 0, &zeroed);
    give(block);
    UNIT_CHECK(sleeper->owner.is_watched);
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(hak_run_of(block) == NULL && !sleeper->owner.is_watched);
    become(sleeper);
    hak_ended_bury(sleeper);
    become(main_thread);
}

// One block of each class cannot be stolen from a sleeping thread. The thread gives them back itself when it wakes, so they do not
// stay if it does little and sleeps again.
static void threads_that_wake_begin_without_magazines(void)
{
    enum { CLASSES = 30 };
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *sleeper = new_thread();
    void *kept = alloc(CLASS);
    for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
        give(alloc(size_class));
    }
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(sleeper->is_asleep && sleeper->started[0] == (1U << CLASSES) - 1);
    become(sleeper);
    give(kept);
    give(alloc(CLASS));
    UNIT_EQUAL(sleeper->started[0], 0);
    UNIT_CHECK(hak_list_is_empty(&sleeper->owner.full));
    for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
        UNIT_CHECK(hak_slabs_first(&sleeper->owner, size_class) == NULL);
    }
    census_check(NULL, 0);
    hak_ended_bury(sleeper);
    become(main_thread);
    tick(TICKS);
}

static void blocks_of_sleepers_that_others_free_come_home(void)
{
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *sleeper = new_thread();
    for (unsigned j = 0; j < EACH; j++) {
        held[0][j] = alloc(CLASS);
    }
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(!sleeper->owner.is_watched);
    for (unsigned j = 0; j < EACH; j++) {
        give(held[0][j]);
        held[0][j] = NULL;
    }
    hak_lock_take(&main_thread->owner.lock);
    hak_remote_post_all(main_thread);
    hak_lock_drop(&main_thread->owner.lock);
    UNIT_CHECK(sleeper->owner.is_watched && sleeper->is_asleep);
    tick(TICKS);
    UNIT_CHECK(!sleeper->owner.is_watched && sleeper->owner.inbox == NULL);
    census_check(held[0], EACH);
    become(sleeper);
    hak_ended_bury(sleeper);
    become(main_thread);
}

// Something comes just when the cache is no longer watched: the thread that brings it has seen the cache watched.
static struct hak_cache *unwatched;

static void bring_a_block(void)
{
    if (unwatched != NULL && !unwatched->owner.is_watched) {
        struct hak_cache *cache = unwatched;
        unwatched = NULL;
        bool zeroed;
        void *block = hak_large_alloc(HAK_MIB(1), 1, 0, &zeroed);
        const unsigned bin = hak_size_class_bin(HAK_MIB(1));
        hak_bigcache_put(hak_bigcache_place(cache, bin), block, bin, hak_map_place(block));
    }
}

static void what_comes_while_it_is_unwatched_is_seen(void)
{
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *sleeper = new_thread();
    held[0][0] = alloc(CLASS);
    become(main_thread);
    unwatched = sleeper;
    hak_fake.on_barrier = bring_a_block;
    tick(5);
    hak_fake.on_barrier = NULL;
    UNIT_CHECK(unwatched == NULL); // it came
    tick(2 * TICKS);
    UNIT_EQUAL(hak_bigcache_expire(sleeper, UINT64_MAX), 0);
    become(sleeper);
    give(held[0][0]);
    held[0][0] = NULL;
    hak_ended_bury(sleeper);
    become(main_thread);
}

// Malloc takes from a companion (rules/site.h) that is asleep, and does not wake it. Or its thread has found a cache awake, and waits
// for the lock until the cache is asleep.
static void what_a_sleeper_is_filled_with_goes_back(void)
{
    const struct hak_request request = {hak_classes[CLASS].bytes, 1, HAK_SITE};
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *sleeper = new_thread();
    become(main_thread);
    tick(TICKS);
    UNIT_CHECK(!sleeper->owner.is_watched && sleeper->is_asleep);
    become(sleeper);
    hak_seldom_end(sleeper);
    held[0][0] = hak_small_take(sleeper, request, CLASS);
    UNIT_CHECK(held[0][0] != NULL);
    hak_lock_take(&sleeper->owner.lock);
    UNIT_CHECK(!hak_steal_has_taken_all(sleeper, CLASS));
    hak_lock_drop(&sleeper->owner.lock);
    become(main_thread);
    tick(TICKS);
    hak_lock_take(&sleeper->owner.lock);
    UNIT_CHECK(hak_steal_has_taken_all(sleeper, CLASS));
    hak_lock_drop(&sleeper->owner.lock);
    census_check(held[0], 1);
    become(sleeper);
    give(held[0][0]);
    held[0][0] = NULL;
    hak_ended_bury(sleeper);
    become(main_thread);
}

// Each slab is visited once after blocks came back to it, not in each tick and not for each batch.
static void slabs_are_swept_once(void)
{
    const unsigned a_slab = hak_classes[CLASS].blocks;
    UNIT_CHECK(a_slab <= A_SLAB);
    struct hak_cache *cache = hak_cache_self;
    for (unsigned i = 0; i < SLABS * a_slab; i++) {
        blocks[i] = alloc(CLASS);
    }
    for (unsigned i = 0; i < SLABS; i++) { // one of each slab: no whole page
        give(blocks[i * a_slab + 3]);
        blocks[i * a_slab + 3] = NULL;
    }
    tick(TICKS);
    UNIT_CHECK(hak_list_is_empty(hak_slabs_of(&cache->owner, CLASS)));
    unsigned swept = 0;
    struct hak_list *list = hak_slabs_swept(&cache->owner, CLASS);
    for (struct hak_list *link = list->next; link != list; link = link->next) {
        swept += HAK_LIST_ITEM(link, struct hak_run, link)->is_swept;
    }
    UNIT_CHECK(swept + 2 >= SLABS);
    census_check(blocks, SLABS * a_slab);
}

// A cache with more slabs than one share of a pass can sweep is watched until all are swept.
static void what_is_left_of_a_share_is_looked_at(void)
{
    const unsigned a_slab = hak_classes[CLASS].blocks;
    struct hak_cache *cache = hak_cache_self;
    for (unsigned i = 0; i < SLABS; i++) {
        give(blocks[i * a_slab + 5]);
        blocks[i * a_slab + 5] = NULL;
    }
    const struct hak_list *slabs = hak_slabs_of(&cache->owner, CLASS);
    hak_lock_take(&cache->owner.lock);
    hak_magazine_flush_all(cache);
    hak_lock_drop(&cache->owner.lock);
    UNIT_CHECK(!hak_list_is_empty(slabs));
    for (unsigned i = 0; i < 10 * TICKS; i++) {
        hak_sweep_tick(1, false, (struct hak_sweep_share){.caches = 64, .lots = 1});
        UNIT_CHECK(cache->owner.is_watched || hak_list_is_empty(slabs));
    }
    UNIT_CHECK(hak_list_is_empty(slabs));
    census_check(blocks, SLABS * a_slab);
}

// All blocks of each slab but one; then the kernel refuses to purge a page.
static void give_most_and_be_refused(void)
{
    const unsigned a_slab = hak_classes[CLASS].blocks;
    for (unsigned i = 0; i < SLABS * a_slab; i++) {
        if (i % a_slab != a_slab / 2 && blocks[i] != NULL) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
    hak_fake.refuse_purge = true;
    hak_sweep_everything();
    UNIT_CHECK(hak_has_bit(hak_cache_self->owner.unpurged, CLASS));
}

// The next trim tries again to purge what the kernel has refused.
static void refused_pages_are_tried_again(void)
{
    const unsigned a_slab = hak_classes[CLASS].blocks;
    give_most_and_be_refused();
    const size_t purges = hak_fake.purges;
    const size_t purged = hak_fake.purged_bytes;
    hak_fake.refuse_purge = false;
    hak_sweep_everything();
    UNIT_CHECK(!hak_has_bit(hak_cache_self->owner.unpurged, CLASS));
    UNIT_CHECK(hak_fake.purges > purges);
    UNIT_CHECK(hak_fake.purged_bytes - purged >=
               (SLABS - 1) * (hak_classes[CLASS].units * HAK_UNIT_BYTES - 4 * hak_os_page_bytes()));
    census_check(blocks, SLABS * a_slab);
}

// Also if the slabs have become orphans since.
static void refused_pages_of_ended_threads_are_tried_again(void)
{
    const unsigned a_slab = hak_classes[CLASS].blocks;
    struct hak_cache *main_thread = hak_cache_self;
    for (unsigned i = 0; i < SLABS * a_slab; i++) {
        if (blocks[i] != NULL) {
            give(blocks[i]);
        }
    }
    struct hak_cache *thread = new_thread();
    for (unsigned i = 0; i < SLABS * a_slab; i++) {
        blocks[i] = alloc(CLASS);
    }
    give_most_and_be_refused();
    hak_ended_bury(thread);
    become(main_thread);
    hak_reclaim_break_up_dead(thread, UINT_MAX);
    hak_fake.refuse_purge = false;
    hak_sweep_everything();
    for (unsigned i = a_slab / 2; i < SLABS * a_slab; i += a_slab) {
        const struct hak_run *slab = hak_run_of(blocks[i]);
        UNIT_CHECK(slab->owner == &hak_cache_shared.owner && !hak_slab_wants_purge(slab));
    }
    census_check(blocks, SLABS * a_slab);
}

int main(void)
{
    new_thread();
    census_have_sweeper();
    start_sweeper();
    threads_that_ended_are_not_looked_at();
    threads_that_sleep_wake_when_they_free();
    threads_that_wake_begin_without_magazines();
    blocks_of_sleepers_that_others_free_come_home();
    what_comes_while_it_is_unwatched_is_seen();
    what_a_sleeper_is_filled_with_goes_back();
    slabs_are_swept_once();
    what_is_left_of_a_share_is_looked_at();
    refused_pages_are_tried_again();
    refused_pages_of_ended_threads_are_tried_again();
    return 0;
}
