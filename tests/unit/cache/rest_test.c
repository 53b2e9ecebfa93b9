// A dead cache that owns nothing keeps its first page only. Its next thread finds a new cache, and no count is lost.
#include "cache/rest.h"

#include <sys/mman.h>

#include "../census.h"
#include "base/options.h"
#include "cache/ended.h"
#include "cache/heap.h"
#include "cache/request.h"
#include "cache/sweep.h"
#include "owner/slabs.h"
#include "slab/ranges.h"

enum { THREADS = 20, CLASSES = 40, EACH = 30, TICKS = 8, PAGES = 3 };

static struct hak_cache *main_thread;
static struct hak_cache *threads[THREADS];

static void tick(void)
{
    for (unsigned i = 0; i < TICKS; i++) {
        hak_sweep_tick(1, false, (struct hak_sweep_share){.caches = UINT_MAX, .lots = UINT_MAX});
    }
}

// The resident pages of the classes.
static unsigned pages_of(const struct hak_cache *cache)
{
    unsigned char there[PAGES];
    unsigned count = 0;
    UNIT_CHECK(UNIT_IS_ALIGNED(cache, hak_os_page_bytes()));
    char *behind = (char *)(uintptr_t)cache + hak_os_page_bytes();
    UNIT_EQUAL(mincore(behind, PAGES * hak_os_page_bytes(), there), 0);
    for (unsigned i = 0; i < PAGES; i++) {
        count += there[i] & 1;
    }
    return count;
}

// As many blocks of each class as make its magazine grow.
static void work(void)
{
    void *blocks[EACH];
    for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
        for (unsigned i = 0; i < EACH; i++) {
            blocks[i] = alloc(size_class);
            UNIT_CHECK(blocks[i] != NULL);
        }
        for (unsigned i = 0; i < EACH; i++) {
            give(blocks[i]);
        }
    }
}

static void begin_all(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = new_thread();
        work();
    }
}

static void end_all(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        become(threads[i]);
        hak_ended_bury(threads[i]);
    }
    become(main_thread);
}

static uint64_t counted(void)
{
    uint64_t sum = 0;
    const struct hak_cache *cache = &hak_cache_shared;
    for (struct hak_cache *next = hak_registry.all; cache != NULL; cache = next) {
        for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
            const struct hak_class_counts *counts = &cache->magazines[size_class].counts;
            sum += counts->refills + counts->refilled_blocks +
                   cache->owner.classes[size_class].made_slabs;
        }
        next = cache == &hak_cache_shared ? next : cache->next;
    }
    return sum;
}

static void expect_held(unsigned pages)
{
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pages_of(threads[i]), pages);
    }
}

// The caches rest, with this many pages.
static void expect_pages(unsigned pages)
{
    expect_held(pages);
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(threads[i]->owner.listed[0], 0);
        UNIT_EQUAL(threads[i]->started[0], 0);
    }
    census_check(NULL, 0);
}

static void ended_threads_keep_a_page(void)
{
    begin_all();
    end_all();
    const uint64_t before = counted();
    UNIT_CHECK(before > 0);
    tick();
    expect_pages(0);
    UNIT_EQUAL(counted(), before);
    const size_t purges = hak_fake.purges;
    tick(); // once for each cache
    UNIT_EQUAL(hak_fake.purges, purges);
}

// The next threads get the same descriptors, which are like new ones.
static void the_next_threads_have_them_again(void)
{
    const uint32_t count = hak_registry.count;
    begin_all();
    UNIT_EQUAL(hak_registry.count, count);
    expect_held(PAGES);
    census_check(NULL, 0);
    end_all();
    tick();
    expect_pages(0);
}

static void a_trim_takes_them_at_once(void)
{
    begin_all();
    end_all();
    hak_sweep_everything();
    expect_pages(0);
}

static void they_serve_and_go(void)
{
    begin_all();
    census_check(NULL, 0);
    end_all();
    hak_fake.refuse_purge = false;
    tick();
    expect_pages(0);
}

static void what_is_refused_stays_and_serves(void)
{
    begin_all();
    end_all();
    const uint64_t before = counted();
    hak_fake.refuse_purge = true;
    tick();
    expect_pages(PAGES);
    UNIT_EQUAL(counted(), before);
    they_serve_and_go();
}

// Only some of the pages were purged before the kernel refused.
static void take_the_first(void *start, size_t bytes)
{
    if (bytes == PAGES * hak_os_page_bytes()) {
        UNIT_EQUAL(madvise(start, hak_os_page_bytes(), MADV_DONTNEED), 0);
    }
}

static void what_is_refused_in_part_serves_as_well(void)
{
    begin_all();
    end_all();
    hak_fake.refuse_purge = true;
    hak_fake.on_purge = take_the_first;
    tick();
    hak_fake.on_purge = NULL;
    expect_pages(PAGES - 1);
    they_serve_and_go();
}

static void who_keeps_all_keeps_them(void)
{
    begin_all();
    end_all();
    hak_options.free_policy = HAK_FREE_KEEP;
    tick();
    expect_held(PAGES);
    hak_options.free_policy = HAK_FREE_NOW;
    tick();
}

static void ended_heaps_keep_a_page(void)
{
    struct hak_cache *heaps[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        heaps[i] = hak_heap_make();
        for (unsigned size_class = 0; size_class < CLASSES; size_class++) {
            const struct hak_request request = {.bytes = hak_classes[size_class].bytes};
            UNIT_CHECK(hak_heap_take(heaps[i], size_class, request) != NULL);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        hak_heap_end(heaps[i]);
    }
    tick();
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pages_of(heaps[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        heaps[i] = hak_heap_make();
        const struct hak_request request = {.bytes = 100};
        UNIT_CHECK(hak_heap_take(heaps[i], 6, request) != NULL);
        hak_heap_end(heaps[i]);
    }
    census_check(NULL, 0);
}

// As many blocks as some slabs have; half of each slab is free.
enum { SPARE_CLASS = 30, SPARE_SLABS = 3, SPARE_MOST = 1024 };
static void *halves[SPARE_MOST];
static unsigned half_count;

static void have_slabs_to_spare(struct hak_cache *cache)
{
    half_count = SPARE_SLABS * hak_classes[SPARE_CLASS].blocks;
    UNIT_CHECK(half_count <= SPARE_MOST);
    for (unsigned i = 0; i < half_count; i++) {
        const struct hak_request request = {.bytes = hak_classes[SPARE_CLASS].bytes};
        halves[i] = hak_heap_take(cache, SPARE_CLASS, request);
        UNIT_CHECK(halves[i] != NULL);
    }
    for (unsigned i = 0; i < half_count; i += 2) {
        give(halves[i]);
    }
    hak_lock_take(&cache->owner.lock);
    hak_magazine_flush_all(cache);
    hak_lock_drop(&cache->owner.lock);
    UNIT_CHECK(hak_slabs_has_spare(&cache->owner, SPARE_CLASS));
}

static void a_heap_whose_slabs_end_with_it_rests(void)
{
    struct hak_cache *heap = hak_heap_make();
    have_slabs_to_spare(heap);
    hak_heap_end(heap);
    tick();
    UNIT_EQUAL(pages_of(heap), 0);
    census_check(NULL, 0);
}

// The other thread owns the slabs as soon as it frees a block of theirs that it does not keep. Nobody asks the dead cache any more.
static void a_thread_whose_slabs_another_takes_rests(void)
{
    struct hak_cache *thread = new_thread();
    have_slabs_to_spare(thread);
    hak_ended_bury(thread);
    become(main_thread);
    give(alloc(SPARE_CLASS));
    const unsigned blocks = hak_classes[SPARE_CLASS].blocks;
    for (unsigned slab = 0; slab < SPARE_SLABS; slab++) {
        hak_remote_outbox(main_thread, thread->owner.tag)->kept = HAK_KEEP_TURNS - 1;
        give(halves[slab * blocks + 1]);
    }
    UNIT_CHECK(!hak_slabs_has_spare(&thread->owner, SPARE_CLASS));
    UNIT_CHECK(hak_slabs_has_spare(&main_thread->owner, SPARE_CLASS));
    for (unsigned i = 1; i < half_count; i += 2) {
        if (i % blocks != 1) {
            give(halves[i]);
        }
    }
    tick();
    UNIT_EQUAL(pages_of(thread), 0);
    UNIT_CHECK(!hak_has_bit(thread->owner.counted, SPARE_CLASS));
    census_check(NULL, 0);
}

int main(void)
{
    main_thread = new_thread();
    census_have_sweeper();
    tick();
    ended_threads_keep_a_page();
    the_next_threads_have_them_again();
    a_trim_takes_them_at_once();
    what_is_refused_stays_and_serves();
    what_is_refused_in_part_serves_as_well();
    who_keeps_all_keeps_them();
    ended_heaps_keep_a_page();
    a_heap_whose_slabs_end_with_it_rests();
    a_thread_whose_slabs_another_takes_rests();
    return 0;
}
