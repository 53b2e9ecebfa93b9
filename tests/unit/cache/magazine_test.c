// Magazines: filled, spilled and grown without losing a block. Their budget: budget_test.c.
#include "base/options.h"
#include "cache/ended.h"
#include "cache/fast_path.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/refill.h"
#include "held.h"
#include "meta/pool.h"

enum { CLASS = 3, OTHER_CLASS = 7 };

static void a_new_magazine_is_half_filled_with_the_lowest_blocks(void)
{
    new_thread();
    UNIT_CHECK(magazine(CLASS)->base == NULL);
    take(CLASS, 1);
    UNIT_EQUAL(hak_cache_magazine_slots(magazine(CLASS)), 62);
    UNIT_EQUAL(hak_cache_self->top[CLASS] - magazine(CLASS)->base - 1, 30);
    take(CLASS, 30);
    UNIT_CHECK(held_blocks[1] == (char *)held_blocks[0] + hak_classes[CLASS].bytes); // upwards
    census_check(held_blocks, held_count);
    free_newest(31);
    census_check(held_blocks, held_count);
}

static void a_full_magazine_spills_the_older_half(void)
{
    take(CLASS, 62);
    free_oldest(62);
    UNIT_EQUAL(hak_cache_self->top[CLASS] - magazine(CLASS)->base - 1, 62);
    take(CLASS, 1);
    void *youngest = held_blocks[0];
    free_newest(1);
    const uint64_t events = hak_cache_self->owner.events;
    take(CLASS, 62); // the magazine's blocks are handed out without a slow path
    UNIT_EQUAL(hak_cache_self->owner.events, events);
    UNIT_CHECK(held_blocks[0] == youngest);
    take(CLASS, 62);
    free_oldest(63); // one too many
    census_check(held_blocks, held_count);
    UNIT_CHECK(hak_cache_self->owner.events > events);
    free_oldest(held_count);
    census_check(held_blocks, 0);
}

// A program that swings wider than the magazine makes it grow: first fourfold, then by doubling.
static void swings_make_it_grow(unsigned size_class)
{
    const uint32_t first = hak_cache_magazine_slots(magazine(size_class));
    uint32_t before = first;
    for (unsigned round = 0; round < 200; round++) {
        take(size_class, 600);
        free_oldest(held_count);
        const uint32_t slots = hak_cache_magazine_slots(magazine(size_class));
        const uint32_t times = before == first ? 4 : 2;
        UNIT_CHECK(slots == before || slots == times * (before + 2) - 2);
        before = slots;
        census_check(held_blocks, held_count);
    }
    UNIT_CHECK(before >= 600);
    const uint64_t events = hak_cache_self->owner.events;
    take(size_class, 300);
    free_newest(300);
    UNIT_EQUAL(hak_cache_self->owner.events, events); // the aim of growing
}

// After many refills, or many spills, in a row, each moves as much as there is room for, and the magazine is longer.
static void what_only_grows_or_shrinks_is_moved_in_large_parts(void)
{
    enum { MANY = 2000, ROW = 128 };
    new_thread();
    const struct hak_class_counts *counts = &magazine(CLASS)->counts;
    take(CLASS, MANY);
    UNIT_CHECK(counts->refills <= 4 + MANY / ROW + 1); // 64, by 31 each
    UNIT_EQUAL(hak_cache_magazine_slots(magazine(CLASS)), 4 * 64 - 2);
    const uint64_t spills = counts->spills;
    free_oldest(MANY);
    UNIT_CHECK(counts->spills - spills <= 3 + MANY / (4 * 64 - 2) + 1);
    take(CLASS, 1); // the row ends
    census_check(held_blocks, held_count);
    free_newest(1);
    const uint64_t refills = counts->refills;
    take(CLASS, MANY);
    UNIT_CHECK(counts->refills - refills <= 4 + MANY / ROW + 1);
    census_check(held_blocks, held_count);
    free_newest(held_count);
    census_check(held_blocks, 0);
}

// Growing moves every block, in the same order.
static void growing_loses_no_block(void)
{
    new_thread();
    for (unsigned round = 0; round < 40; round++) {
        take(OTHER_CLASS, 100);
        census_check(held_blocks, held_count);
        for (unsigned i = 0; i < 50; i++) {
            free_oldest(2);
            census_check(held_blocks, held_count);
        }
    }
    UNIT_CHECK(hak_cache_magazine_slots(magazine(OTHER_CLASS)) > 62 / 2);
    free_newest(held_count);
    census_check(held_blocks, held_count);
}

static void without_memory_it_works_without_a_magazine(void)
{
    new_thread();
    take(20, 1); // so that the class has a slab
    hak_fake.refuse_asks = true;
    while (hak_pool_take(64) != NULL) {
        continue; // none left for an array of places
    }
    for (size_t bytes = HAK_MIB(1); bytes > 64; bytes /= 2) {
        while (hak_pool_take(bytes) != NULL) {
            continue;
        }
    }
    struct hak_cache *cache = hak_cache_self;
    hak_lock_take(&cache->owner.lock);
    UNIT_CHECK(hak_refill(cache, 21) == NULL); // not even a slab
    hak_lock_drop(&cache->owner.lock);
    hak_fake.refuse_asks = false;
    take(21, 1);
    UNIT_CHECK(magazine(21)->base != NULL);
    free_newest(2);
    census_check(held_blocks, held_count);
}

// A double free is found when the block goes back into its slab, at the latest when all blocks do.
static void flushing_finds_double_frees(void)
{
    struct hak_cache *cache = new_thread();
    take(CLASS, 2); // the other block keeps the slab
    give(held_blocks[0]);
    give(held_blocks[0]);
    hak_lock_take(&cache->owner.lock);
    UNIT_DIES(hak_magazine_flush_all(cache), "double free: ");
}

static size_t held_in(unsigned size_class)
{
    return (size_t)(hak_cache_self->top[size_class] - magazine(size_class)->base) - 1;
}

static bool is_sound(unsigned size_class)
{
    struct hak_cache *cache = hak_cache_self;
    hak_lock_take(&cache->owner.lock);
    const bool is = hak_magazine_is_sound(cache, size_class);
    hak_lock_drop(&cache->owner.lock);
    return is;
}

// What is wrong in a magazine can be seen without writing: a block that is there twice, and one that is in its slab, too.
static void a_look_finds_double_frees(void)
{
    struct hak_cache *cache = new_thread();
    take(CLASS, 40);
    free_newest(20);
    UNIT_CHECK(is_sound(CLASS));
    give(held_blocks[held_count - 1]);
    UNIT_CHECK(is_sound(CLASS));
    give(held_blocks[held_count - 1]);
    UNIT_CHECK(!is_sound(CLASS));

    cache = new_thread();
    take(CLASS, 40);
    void *block = held_blocks[held_count - 1];
    free_newest(1);
    hak_lock_take(&cache->owner.lock);
    hak_magazine_flush(cache, CLASS);
    hak_lock_drop(&cache->owner.lock);
    UNIT_CHECK(is_sound(CLASS)); // it is empty
    give(block);
    UNIT_CHECK(!is_sound(CLASS));
}

// When the process ends, magazines are only looked at: in a child of a fork, each page that is written is copied.
static void the_end_of_the_process_leaves_magazines_as_they_are(void)
{
    new_thread();
    take(CLASS, 40);
    free_newest(20);
    const size_t held = held_in(CLASS);
    hak_ended_process();
    UNIT_EQUAL(held_in(CLASS), held);
    give(held_blocks[held_count - 1]);
    give(held_blocks[held_count - 1]);
    UNIT_DIES(hak_ended_process(), "double free: ");
}

enum { LARGEST = HAK_SMALL_CLASSES - 1, IN_A_MIB = HAK_MIB(1) / HAK_SMALL_MAX };

// Blocks that come and go cause nothing, nor do large ones; slabs that grow may take what was not in use
// since they last grew.
static void only_growth_empties_what_is_not_in_use(void)
{
    new_thread();
    take(CLASS, 1);
    free_newest(1);
    for (unsigned round = 0; round < 50; round++) {
        const struct hak_request request = {HAK_MIB(4), 1, NULL};
        void *block = hak_large_serve(hak_cache_self, request, 1, NULL);
        UNIT_CHECK(block != NULL);
        take(LARGEST, IN_A_MIB / 4);
        free_newest(IN_A_MIB / 4);
        hak_free_slow(block, hak_cache_self);
    }
    UNIT_CHECK(held_in(CLASS) > 0);
    take(LARGEST, IN_A_MIB); // much for such a small heap
    UNIT_CHECK(held_in(CLASS) > 0);
    take(LARGEST, 2 * IN_A_MIB);
    UNIT_EQUAL(held_in(CLASS), 0);
    free_newest(3 * IN_A_MIB);
    census_check(held_blocks, held_count);
}

// A magazine counts as in use also without a slow path.
static void growth_leaves_what_the_fast_paths_use(void)
{
    new_thread();
    take(CLASS, 1);
    const uint64_t refills = hak_cache_self->magazines[CLASS].counts.refills;
    for (unsigned round = 0; round < 24; round++) {
        take(LARGEST, IN_A_MIB / 4);
        UNIT_CHECK(held_in(CLASS) > 0);
        take(CLASS, 1);
    }
    UNIT_EQUAL(hak_cache_self->magazines[CLASS].counts.refills, refills);
    free_newest(held_count);
    census_check(held_blocks, held_count);
}

int main(void)
{
    a_new_magazine_is_half_filled_with_the_lowest_blocks();
    a_full_magazine_spills_the_older_half();
    swings_make_it_grow(CLASS);
    what_only_grows_or_shrinks_is_moved_in_large_parts();
    growing_loses_no_block();
    without_memory_it_works_without_a_magazine();
    only_growth_empties_what_is_not_in_use();
    growth_leaves_what_the_fast_paths_use();
    flushing_finds_double_frees();
    a_look_finds_double_frees();
    the_end_of_the_process_leaves_magazines_as_they_are();
    return 0;
}
