// soak in: tsan
// Gaps between runs are found: the first one by address that fits, the same as when every unit is examined.
#include <limits.h>

#include "../unit.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "slab/arena.h"
#include "slab/gaps.h"

enum { FIRST_SLOT = 4090, SUPERS = 12, UNITS = SUPERS * HAK_SUPER_UNITS };

static struct hak_gaps gaps;
static struct hak_super *supers[SUPERS];
static uint64_t free_units[SUPERS];
static bool is_there[SUPERS];

static bool is_free(unsigned unit)
{
    const unsigned super = unit / HAK_SUPER_UNITS;
    return unit < UNITS && is_there[super] &&
           ((free_units[super] >> (unit % HAK_SUPER_UNITS)) & 1) != 0;
}

static unsigned row_at(unsigned unit)
{
    unsigned length = 0;
    while (is_free(unit + length)) {
        length++;
    }
    return length;
}

static void note(unsigned index)
{
    hak_gaps_note(&gaps, FIRST_SLOT + index, is_there[index] ? free_units[index] : 0, true);
}

static void publish(unsigned index, bool there)
{
    struct hak_super *super = supers[index];
    super->base = hak_map.window + (size_t)(FIRST_SLOT + index) * HAK_SUPER_BYTES;
    is_there[index] = there;
    hak_map_publish(super->base, HAK_SUPER_BYTES, there ? super : NULL);
    note(index);
}

// Rows of all lengths; among them are wholly free and wholly used superslabs.
static uint64_t random_units(struct ht_random *random)
{
    uint64_t bits = 0;
    const size_t kind = ht_random_below(random, 4);
    if (kind == 0) {
        return ~UINT64_C(0);
    }
    for (unsigned unit = 0; unit < HAK_SUPER_UNITS && kind != 1;) {
        const unsigned length = 1 + (unsigned)ht_random_below(random, HAK_SUPER_UNITS - unit);
        bits |= ht_random_below(random, 2) != 0 ? hak_bit_range(unit, length) : 0;
        unit += length;
    }
    return bits;
}

static void check_inside(unsigned units)
{
    uint64_t expected = UINT64_MAX;
    for (unsigned unit = 0; unit < UNITS && expected == UINT64_MAX; unit++) {
        const unsigned left = HAK_SUPER_UNITS - unit % HAK_SUPER_UNITS;
        const unsigned row = row_at(unit);
        expected =
            (row < left ? row : left) >= units ? FIRST_SLOT + unit / HAK_SUPER_UNITS : UINT64_MAX;
    }
    UNIT_EQUAL(hak_gaps_find(&gaps, 0, units, false), expected);
}

// The first superslab from whose end, rounded up to the alignment, a row is long enough.
static void check_across(unsigned units, unsigned align_units)
{
    struct hak_gap gap = {0, 0};
    const bool found = hak_gaps_find_across(&gaps, 0, units, align_units, UINT_MAX, &gap);
    for (unsigned super = 0; super < SUPERS; super++) {
        unsigned unit = HAK_SUPER_UNITS;
        while (unit > 0 && is_free(super * HAK_SUPER_UNITS + unit - 1)) {
            unit--;
        }
        unit = (unit + align_units - 1) / align_units * align_units;
        if (unit < HAK_SUPER_UNITS && row_at(super * HAK_SUPER_UNITS + unit) >= units) {
            UNIT_CHECK(found);
            UNIT_EQUAL(gap.slot, FIRST_SLOT + super);
            UNIT_EQUAL(gap.unit, unit);
            return;
        }
    }
    UNIT_CHECK(!found);
}

static void check_before(unsigned super)
{
    unsigned length = 0;
    while (length < super * HAK_SUPER_UNITS && is_free(super * HAK_SUPER_UNITS - length - 1)) {
        length++;
    }
    UNIT_EQUAL(hak_gaps_before(&gaps, FIRST_SLOT + super), length);
}

static void every_question_is_answered_as_by_a_look_at_all_units(uint64_t seed)
{
    struct ht_random random = {seed};
    for (unsigned step = 0; step < 20000; step++) {
        const unsigned index = (unsigned)ht_random_below(&random, SUPERS);
        free_units[index] = random_units(&random);
        publish(index, ht_random_below(&random, 8) != 0);
        check_inside(1 + (unsigned)ht_random_below(&random, HAK_SUPER_UNITS));
        check_across(1 + (unsigned)ht_random_below(&random, 4 * HAK_SUPER_UNITS), 1);
        check_across(1 + (unsigned)ht_random_below(&random, HAK_SUPER_UNITS),
                     1U << ht_random_below(&random, 7));
        check_before((unsigned)ht_random_below(&random, SUPERS + 1));
    }
}

static void superslabs_elsewhere_are_not_joined(void)
{
    for (unsigned index = 0; index < SUPERS; index++) {
        publish(index, false);
    }
    free_units[3] = ~UINT64_C(0);
    free_units[4] = ~UINT64_C(0);
    publish(3, true);
    publish(4, true);
    struct hak_gap gap;
    UNIT_CHECK(hak_gaps_find_across(&gaps, 0, 128, 1, UINT_MAX, &gap));
    hak_gaps_note(&gaps, FIRST_SLOT + 4, ~UINT64_C(0), false); // the same slot, another address
    UNIT_CHECK(!hak_gaps_find_across(&gaps, 0, 128, 1, UINT_MAX, &gap));
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    for (unsigned index = 0; index < SUPERS; index++) {
        UNIT_CHECK(hak_gaps_reserve(&gaps, FIRST_SLOT + index));
        supers[index] = hak_pool_take(sizeof *supers[index]);
    }
    for (uint64_t seed = 1; seed <= 3; seed++) {
        every_question_is_answered_as_by_a_look_at_all_units(seed);
    }
    superslabs_elsewhere_are_not_joined();
    return 0;
}
