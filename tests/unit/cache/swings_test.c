// What a program takes again and again is left with it.
#include "cache/swings.h"

#include "../unit.h"
#include "base/bits.h"

static struct hak_swings swings;
static size_t retaken;

// `bytes` go, and are taken again. What may stay from now on.
static size_t swing(size_t bytes)
{
    const size_t earned = hak_swings_gone(&swings, bytes, retaken);
    retaken += bytes;
    return earned;
}

static size_t swing_times(size_t bytes, unsigned times)
{
    size_t earned = 0;
    for (unsigned i = 0; i < times; i++) {
        earned += swing(bytes);
    }
    return earned;
}

static void after_some_times_it_stays(void)
{
    swings = (struct hak_swings){.retaken_at = retaken};
    UNIT_EQUAL(swing_times(HAK_MIB(100), HAK_SWINGS), 0);
    UNIT_EQUAL(swing(HAK_MIB(100)), HAK_MIB(100));
    UNIT_EQUAL(swing_times(HAK_MIB(100), HAK_SWINGS - 2), 0); // and for more, as often again
}

// Each swing gives back in many steps; none is judged as a small swing of its own.
static void in_steps_as_at_once(void)
{
    swings = (struct hak_swings){.retaken_at = retaken};
    for (unsigned i = 0; i < HAK_SWINGS; i++) {
        for (unsigned step = 0; step < 100; step++) {
            UNIT_EQUAL(hak_swings_gone(&swings, HAK_MIB(1), retaken), 0);
        }
        retaken += HAK_MIB(100);
    }
    UNIT_EQUAL(hak_swings_gone(&swings, HAK_MIB(1), retaken), HAK_MIB(100));
}

// A sweeper that was there for a while gave back 1,000 MiB, which nobody noted here.
static void what_others_gave_back_does_not_count(void)
{
    swings = (struct hak_swings){.retaken_at = retaken};
    swing_times(HAK_MIB(100), 2);
    retaken += HAK_MIB(1000);
    UNIT_EQUAL(swing_times(HAK_MIB(100), HAK_SWINGS - 2), 0);
    UNIT_EQUAL(swing(HAK_MIB(100)), HAK_MIB(100));
}

static void what_does_not_come_again_earns_nothing(void)
{
    swings = (struct hak_swings){.retaken_at = retaken};
    for (unsigned i = 0; i < 1000; i++) {
        UNIT_EQUAL(hak_swings_gone(&swings, HAK_MIB(1), retaken), 0);
    }
    swings = (struct hak_swings){.retaken_at = retaken};
    UNIT_EQUAL(hak_swings_gone(&swings, HAK_MIB(1000), retaken), 0); // a peak among small swings
    UNIT_EQUAL(swing_times(HAK_MIB(1), 10 * HAK_SWINGS), 0);
    hak_swings_fade(&swings, 1000); // and long after it
    UNIT_CHECK(swing_times(HAK_MIB(1), 2 * HAK_SWINGS) > 0);
}

// Half of it fades in 11 ticks: whoever swings every second pays for each swing.
static void slow_swings_earn_nothing(void)
{
    swings = (struct hak_swings){.retaken_at = retaken};
    for (unsigned i = 0; i < 100; i++) {
        UNIT_EQUAL(swing(HAK_MIB(100)), 0);
        hak_swings_fade(&swings, 11);
    }
    hak_swings_fade(&swings, UINT64_MAX);
    UNIT_CHECK(swings.again_bytes < HAK_SWINGS_FADE);
}

int main(void)
{
    after_some_times_it_stays();
    in_steps_as_at_once();
    what_others_gave_back_does_not_count();
    what_does_not_come_again_earns_nothing();
    slow_swings_earn_nothing();
    return 0;
}
