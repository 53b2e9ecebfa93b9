// with features
// Magazines grow within their budget: those in use at the cost of the others. On trial, each cache has a budget of its own;
// without ACE their size is fixed.
#include "base/options.h"
#include "base/variants.h"
#include "cache/cache.h"
#include "held.h"
#include "meta/pool.h"
#include "profile/sampler.h"

static void the_budget_holds(void)
{
    new_thread();
    hak_options.magazine_bytes = 65536;
    for (unsigned round = 0; round < 400; round++) {
        const unsigned size_class = round / 20 % 40;
        take(size_class, 700);
        free_oldest(held_count);
        size_t grown = 0;
        for (unsigned other = 0; other < HAK_SMALL_CLASSES; other++) {
            const uint32_t first = (1U << hak_classes[other].magazine_log2) - 2;
            const uint32_t slots = hak_cache_magazine_slots(magazine(other));
            UNIT_CHECK(slots == 0 || slots >= first);
            grown += slots != 0 ? (slots - first) * (size_t)hak_classes[other].bytes : 0;
        }
        UNIT_EQUAL(hak_cache_self->magazine_bytes, grown);
        UNIT_CHECK(grown <= hak_options.magazine_bytes);
        census_check(held_blocks, held_count);
    }
    // The class in use got its share back from those that are no longer in use.
    UNIT_CHECK(hak_cache_magazine_slots(magazine(19)) > (1U << hak_classes[19].magazine_log2) - 2);
    hak_options.magazine_bytes = HAK_MIB(1);
}

static void swing(void)
{
    for (unsigned round = 0; round < 20; round++) {
        take(10, 700);
        free_oldest(held_count);
    }
}

static void on_trial_each_group_has_its_own(void)
{
    new_thread();
    const unsigned group = hak_cache_group(hak_cache_self);
    hak_variants.values[0] = 4096;
    hak_variants.values[1] = HAK_MIB(1);
    hak_variants.swap = group ^ 1; // the second value
    hak_variants.option = HAK_OPTION_IS_magazine_bytes;
    swing();
    UNIT_CHECK(hak_cache_self->magazine_bytes > 65536);
    // The groups swap values: the next free finds the smaller budget, and the magazine that had grown shrinks.
    take(10, 1);
    hak_variants.swap ^= 1;
    hak_sampler_kick();
    free_oldest(1);
    UNIT_CHECK(hak_cache_self->magazine_bytes <= 4096);
    census_check(held_blocks, held_count);
    swing();
    UNIT_CHECK(hak_cache_self->magazine_bytes <= 4096);
    hak_variants.option = 0;
    swing();
    UNIT_CHECK(hak_cache_self->magazine_bytes > 65536);
    census_check(held_blocks, held_count);
}

// Without ACE a magazine has four times the minimum of places, or the minimum when the budget is used up, and keeps it.
static void without_ace_the_size_is_fixed(void)
{
    const uint32_t fixed = (4U << hak_classes[10].magazine_log2) - 2;
    new_thread();
    hak_options.ace = 0;
    swing();
    UNIT_EQUAL(hak_cache_magazine_slots(magazine(10)), fixed);
    UNIT_CHECK(hak_cache_self->magazine_bytes > 4096);
    hak_options.magazine_bytes = 4096;
    take(11, 1);
    UNIT_EQUAL(hak_cache_magazine_slots(magazine(11)), (1U << hak_classes[11].magazine_log2) - 2);
    free_newest(1);
    hak_options.magazine_bytes = HAK_MIB(1);
    census_check(held_blocks, held_count);
}

// Switched on, ACE continues with the present sizes; switched off, magazines that have grown start again.
static void ace_can_change_while_it_runs(void)
{
    const uint32_t fixed = (4U << hak_classes[10].magazine_log2) - 2;
    hak_options.ace = 1;
    swing();
    UNIT_CHECK(hak_cache_magazine_slots(magazine(10)) > fixed);
    take(10, 1);
    hak_options.ace = 0;
    hak_sampler_kick();
    free_newest(1);
    UNIT_EQUAL(hak_cache_magazine_slots(magazine(10)), fixed);
    census_check(held_blocks, held_count);
    hak_options.ace = 1;
}

int main(void)
{
    the_budget_holds();
    on_trial_each_group_has_its_own();
    without_ace_the_size_is_fixed();
    ace_can_change_while_it_runs();
    return 0;
}
