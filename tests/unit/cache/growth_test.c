// A magazine grows if the part of the time that this saves is worth the part of the heap that the magazine then holds.
#include "cache/growth.h"

#include "../unit.h"
#include "base/bits.h"

enum { PERIODS = 10 };

// Swings of `blocks` blocks, one each `period_ns` by a clock with ticks; a refill moves half a magazine of `slots`. How often is
// growth worth `more_bytes` of a heap of 16 MiB?
static unsigned times_worth(uint64_t period_ns, uint64_t blocks, uint64_t slots, size_t more_bytes)
{
    struct hak_growth last = {0};
    struct hak_growth_question question = {
        .now_ns = 1000000000,
        .more_bytes = more_bytes,
        .heap_bytes = HAK_MIB(16),
    };
    (void)hak_growth_ask(&last, question);
    unsigned times = 0;
    for (unsigned i = 1; i <= PERIODS; i++) {
        question.now_ns = 1000000000 + i * period_ns / HAK_OS_TICK_NS * HAK_OS_TICK_NS;
        question.refilled_blocks += blocks;
        question.refills += blocks / (slots / 2);
        times += hak_growth_ask(&last, question);
    }
    return times;
}

static void swings_without_a_pause_are_worth_it(void)
{
    UNIT_EQUAL(times_worth(150000, 5000, 64, HAK_KIB(64)), PERIODS);
    UNIT_EQUAL(times_worth(200000, 8000, 512, HAK_MIB(1)), PERIODS);
}

// One swing saves too little for a whole tick of the clock; several together save enough.
static void what_swings_save_in_a_tick_is_counted_together(void)
{
    UNIT_EQUAL(times_worth(200000, 2000, 512, HAK_MIB(1)), PERIODS / 2);
    UNIT_EQUAL(times_worth(400000, 200, 512, HAK_MIB(1)), 0);
}

static void swings_once_in_a_while_are_not(void)
{
    UNIT_EQUAL(times_worth(7000000, 400, 64, HAK_MIB(1)), 0);
    UNIT_EQUAL(times_worth(1000000000, 5000, 64, HAK_KIB(64)), 0);
}

// The same swing is worth a little memory, but not much.
static void what_it_holds_counts(void)
{
    UNIT_EQUAL(times_worth(7000000, 400, 64, HAK_KIB(16)), PERIODS);
    UNIT_EQUAL(times_worth(7000000, 5000, 64, HAK_MIB(256)), 0);
}

// Nor is it worth it when asked for the first time, before anything was counted, or without refills since.
static void without_refills_it_is_not(void)
{
    UNIT_EQUAL(times_worth(1000, 0, 64, HAK_KIB(64)), 0);
}

int main(void)
{
    swings_without_a_pause_are_worth_it();
    what_swings_save_in_a_tick_is_counted_together();
    swings_once_in_a_while_are_not();
    what_it_holds_counts();
    without_refills_it_is_not();
    return 0;
}
