// Magazines grow within their budget: those in use at the cost of those that are not.
#include "base/options.h"
#include "held.h"
#include "meta/pool.h"

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
            const uint32_t slots = magazine(other)->slots;
            UNIT_CHECK(slots == 0 || slots >= first);
            grown += slots != 0 ? (slots - first) * (size_t)hak_classes[other].bytes : 0;
        }
        UNIT_EQUAL(hak_cache_self->magazine_bytes, grown);
        UNIT_CHECK(grown <= hak_options.magazine_bytes);
        census_check(held, held_count);
    }
    // The class in use got its share back from those no longer in use.
    UNIT_CHECK(magazine(19)->slots > (1U << hak_classes[19].magazine_log2) - 2);
    hak_options.magazine_bytes = HAK_MIB(1);
}

int main(void)
{
    the_budget_holds();
    return 0;
}
