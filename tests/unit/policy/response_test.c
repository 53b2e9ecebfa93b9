// When memory is short, each tick gives back one more kind of free memory, and in the end all.
#include "policy/response.h"

#include "../unit.h"

static struct hak_response response;

static void shortage_goes_on_step_by_step(void)
{
    UNIT_CHECK(!hak_response_next(&response, false));
    UNIT_EQUAL(response.urgency, HAK_URGENCY_NONE);
    UNIT_CHECK(!hak_response_next(&response, true));
    UNIT_EQUAL(response.urgency, HAK_URGENCY_FREE);
    UNIT_CHECK(!hak_response_next(&response, true));
    UNIT_EQUAL(response.urgency, HAK_URGENCY_KEPT);
    UNIT_CHECK(!hak_response_next(&response, true));
    UNIT_EQUAL(response.urgency, HAK_URGENCY_IDLE);
    UNIT_CHECK(hak_response_next(&response, true)); // all kinds
    UNIT_EQUAL(response.urgency, HAK_URGENCY_IDLE);
}

// A program that needs nearly all of its group's memory does not lose its magazines in every tick.
static void all_is_given_back_now_and_then(void)
{
    unsigned times = 0;
    for (unsigned i = 0; i < 10 * HAK_RESPONSE_REPEAT_TICKS; i++) {
        times += hak_response_next(&response, true);
    }
    UNIT_EQUAL(times, 10);
}

static void calm_goes_back_slowly(void)
{
    for (unsigned i = 1; i <= 3 * HAK_RESPONSE_CALM_TICKS; i++) {
        UNIT_CHECK(!hak_response_next(&response, false));
        UNIT_EQUAL(response.urgency, HAK_URGENCY_IDLE - i / HAK_RESPONSE_CALM_TICKS);
    }
    UNIT_CHECK(!hak_response_next(&response, false));
    UNIT_EQUAL(response.urgency, HAK_URGENCY_NONE);
}

int main(void)
{
    shortage_goes_on_step_by_step();
    all_is_given_back_now_and_then();
    calm_goes_back_slowly();
    return 0;
}
