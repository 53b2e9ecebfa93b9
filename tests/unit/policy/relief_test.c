// When memory is short, one kind of free memory more is given back in each tick, and then all.
#include "policy/relief.h"

#include "../unit.h"

static struct hak_relief relief;

static void shortage_goes_on_step_by_step(void)
{
    UNIT_CHECK(!hak_relief_next(&relief, false));
    UNIT_EQUAL(relief.hurry, HAK_HURRY_NONE);
    UNIT_CHECK(!hak_relief_next(&relief, true));
    UNIT_EQUAL(relief.hurry, HAK_HURRY_FREE);
    UNIT_CHECK(!hak_relief_next(&relief, true));
    UNIT_EQUAL(relief.hurry, HAK_HURRY_KEPT);
    UNIT_CHECK(!hak_relief_next(&relief, true));
    UNIT_EQUAL(relief.hurry, HAK_HURRY_IDLE);
    UNIT_CHECK(hak_relief_next(&relief, true)); // all
    UNIT_EQUAL(relief.hurry, HAK_HURRY_IDLE);
}

// A program that needs nearly all of its group does not lose its magazines in every tick.
static void all_is_given_back_now_and_then(void)
{
    unsigned times = 0;
    for (unsigned i = 0; i < 10 * HAK_RELIEF_REPEAT_TICKS; i++) {
        times += hak_relief_next(&relief, true);
    }
    UNIT_EQUAL(times, 10);
}

static void calm_goes_back_slowly(void)
{
    for (unsigned i = 1; i <= 3 * HAK_RELIEF_CALM_TICKS; i++) {
        UNIT_CHECK(!hak_relief_next(&relief, false));
        UNIT_EQUAL(relief.hurry, HAK_HURRY_IDLE - i / HAK_RELIEF_CALM_TICKS);
    }
    UNIT_CHECK(!hak_relief_next(&relief, false));
    UNIT_EQUAL(relief.hurry, HAK_HURRY_NONE);
}

int main(void)
{
    shortage_goes_on_step_by_step();
    all_is_given_back_now_and_then();
    calm_goes_back_slowly();
    return 0;
}
