// A class that a thread seldom uses has no magazine, and leaves nothing behind.
#include "cache/seldom.h"

#include "cache/ended.h"
#include "cache/heap.h"
#include "cache/magazine.h"
#include "cache/start.h"
#include "held.h"

enum { CLASS = 3, CLASSES = 40, A_SLAB = 1 << 10 };

static unsigned magazines_of(const struct hak_cache *cache)
{
    return hak_count_bits(cache->started[0]) + hak_count_bits(cache->started[1]);
}

// Bytes of all slabs, whoever owns them.
static size_t slab_bytes(void)
{
    return hak_load_relaxed(&hak_arena.slab_bytes);
}

static void pairs(unsigned size_class, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        take(size_class, 1);
        free_newest(1);
    }
}

static void the_first_thread_has_magazines_from_the_beginning(void)
{
    hak_start_thread(NULL);
    UNIT_EQUAL(hak_cache_self->owner.tag >> 8, 1);
    take(CLASS, 1);
    UNIT_CHECK(magazine(CLASS)->base != NULL);
    free_newest(1);
    census_check(held_blocks, 0);
}

static void a_heap_has_magazines_from_the_beginning(void)
{
    struct hak_cache *heap = hak_heap_make();
    void *block = hak_heap_take(heap, CLASS, (struct hak_request){64, 1, NULL});
    UNIT_CHECK(heap->magazines[CLASS].base != NULL);
    give(block);
    hak_heap_end(heap);
}

static void a_class_that_is_asked_for_often_gets_its_magazine(void)
{
    struct hak_cache *cache = new_quiet_thread();
    for (unsigned i = 0; i < HAK_SELDOM_OF_CLASS / 2; i++) {
        pairs(CLASS, 1);
        UNIT_EQUAL(magazines_of(cache), 0);
    }
    take(CLASS, 1);
    UNIT_CHECK(magazine(CLASS)->base != NULL);
    census_check(held_blocks, 1);
    free_newest(1);
    take(CLASS + 1, 1);
    UNIT_EQUAL(magazines_of(cache), 1); // of this class only
    free_newest(1);
    census_check(held_blocks, 0);
}

// Also if the thread only frees.
static void a_class_that_is_freed_often_gets_its_magazine(void)
{
    struct hak_cache *cache = new_thread();
    take(CLASS, A_SLAB);
    hak_lock_take(&cache->owner.lock);
    hak_magazine_renew(cache);
    hak_lock_drop(&cache->owner.lock);
    free_newest(HAK_SELDOM_OF_CLASS);
    UNIT_CHECK(magazine(CLASS)->base == NULL);
    free_newest(1);
    UNIT_CHECK(magazine(CLASS)->base != NULL);
    census_check(held_blocks, held_count);
    free_newest(held_count);
}

static void a_thread_that_asks_often_gets_its_magazines(void)
{
    struct hak_cache *cache = new_quiet_thread();
    unsigned calls = 0;
    for (unsigned i = 0; calls < HAK_SELDOM_OF_ALL; i++, calls += 2) {
        pairs(i % CLASSES, 1);
    }
    UNIT_EQUAL(magazines_of(cache), 0);
    pairs(CLASSES, 1);
    UNIT_EQUAL(magazines_of(cache), 1);
}

static void what_is_seldom_leaves_nothing(void)
{
    const size_t before = slab_bytes();
    struct hak_cache *cache = new_quiet_thread();
    for (unsigned i = 0; i < 5 * CLASSES; i++) {
        take(i % CLASSES, 1);
    }
    census_check(held_blocks, held_count);
    free_oldest(held_count);
    census_check(held_blocks, 0);
    UNIT_EQUAL(slab_bytes(), before);
    UNIT_EQUAL(magazines_of(cache), 0);
}

// 200 blocks, whatever their sizes: a page for each magazine that remains.
static void two_hundred_blocks_leave_few_magazines(void)
{
    for (unsigned classes = 1; classes <= CLASSES; classes++) {
        struct hak_cache *cache = new_quiet_thread();
        for (unsigned i = 0; i < 200; i++) {
            take(i % classes, 1);
        }
        free_oldest(held_count);
        UNIT_CHECK(magazines_of(cache) <= 8);
    }
}

static void a_thread_that_renews_begins_without_magazines(void)
{
    struct hak_cache *cache = new_thread();
    take(CLASS, A_SLAB);
    take(CLASS + 1, A_SLAB);
    free_newest(A_SLAB + A_SLAB / 2);
    hak_lock_take(&cache->owner.lock);
    hak_magazine_renew(cache);
    hak_lock_drop(&cache->owner.lock);
    UNIT_EQUAL(magazines_of(cache), 0);
    UNIT_EQUAL(cache->magazine_bytes, 0);
    census_check(held_blocks, held_count);
    pairs(CLASS + 1, 1);
    UNIT_EQUAL(magazines_of(cache), 0);
    free_newest(held_count);
    census_check(held_blocks, 0);
}

// A cache whose thread has ended does not allocate: it reclaims no slab of a class, also if the class had no magazine.
static void the_next_thread_of_a_cache_has_asked_for_nothing(void)
{
    struct hak_cache *cache = new_quiet_thread();
    pairs(CLASS, 1);
    UNIT_CHECK(magazine(CLASS)->is_refilled);
    hak_ended_bury(cache);
    UNIT_CHECK(!cache->magazines[CLASS].is_refilled);
    UNIT_CHECK(new_quiet_thread() == cache);
    pairs(CLASS, 1);
    UNIT_CHECK(magazine(CLASS)->is_refilled);
}

static void a_double_free_is_found_at_once(void)
{
    new_quiet_thread();
    take(CLASS, 2); // the other block keeps the slab
    give(held_blocks[0]);
    UNIT_DIES(give(held_blocks[0]), "double free: ");
}

int main(void)
{
    the_first_thread_has_magazines_from_the_beginning();
    a_heap_has_magazines_from_the_beginning();
    a_class_that_is_asked_for_often_gets_its_magazine();
    a_class_that_is_freed_often_gets_its_magazine();
    a_thread_that_asks_often_gets_its_magazines();
    what_is_seldom_leaves_nothing();
    two_hundred_blocks_leave_few_magazines();
    a_thread_that_renews_begins_without_magazines();
    the_next_thread_of_a_cache_has_asked_for_nothing();
    a_double_free_is_found_at_once();
    return 0;
}
