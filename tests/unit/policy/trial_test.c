// A trial finds which of two values costs less, whichever group has it, and says when there is no difference that matters.
// Where there is none, it decides for one at most one time in twenty, however often it is checked.
#include "../unit.h"
#include "noise.h"
#include "policy/trial.h"

enum { TRIALS = 400, PAIRS_MOST = 1000 };

// What a group with `work` seconds of work costs in a half; `price`: of the group's value.
static struct hak_round half_of(double work, double price)
{
    const double noise = 1 + 0.6 * (chance() - 0.5);
    return (struct hak_round){
        .wall_ns = 500000000,
        .processor_ns = (uint64_t)(work * 1e9),
        .allocator_ns = (uint64_t)(work * 1e8 * price * noise),
        .faults = (uint64_t)(work * 1000),
    };
}

struct outcome {
    unsigned verdicts[4];
    uint64_t pairs;
};

// `roles`: how much more the threads of the second group work, and cost.
static struct outcome play(double first, double second, double roles)
{
    struct outcome outcome = {{0}, 0};
    for (unsigned i = 0; i < TRIALS; i++) {
        struct hak_trial trial;
        hak_trial_start(&trial, i * UINT64_C(0x9E3779B97F4A7C15));
        bool is_over = false;
        for (unsigned half = 0; !is_over && half < 2 * PAIRS_MOST; half++) {
            const double swell = 0.2 + 0.1 * (half % 7);
            const double prices[] = {first, second};
            const struct hak_round groups[] = {
                half_of(swell, prices[trial.swap]),
                half_of(swell * roles, roles * prices[1 ^ trial.swap])};
            is_over = hak_trial_note(&trial, groups);
        }
        outcome.verdicts[trial.verdict]++;
        outcome.pairs += trial.sequence.count;
    }
    return outcome;
}

static void the_dearer_value_loses(void)
{
    const struct outcome first = play(1, 2, 1);
    UNIT_CHECK(first.verdicts[HAK_VERDICT_FIRST] >= TRIALS * 99 / 100);
    UNIT_CHECK(first.pairs / TRIALS < 15);
    const struct outcome second = play(1.5, 1, 3);
    UNIT_CHECK(second.verdicts[HAK_VERDICT_SECOND] >= TRIALS * 99 / 100);
}

static void no_difference_is_seldom_taken_for_one(void)
{
    // Threads of the second group do three times as much, at three times the price.
    const struct outcome same = play(1, 1, 3);
    UNIT_CHECK(same.verdicts[HAK_VERDICT_FIRST] + same.verdicts[HAK_VERDICT_SECOND] <= TRIALS / 20);
    UNIT_CHECK(same.verdicts[HAK_VERDICT_SAME] >= TRIALS * 9 / 10);
}

static void pairs_without_work_say_nothing(void)
{
    struct hak_trial trial;
    hak_trial_start(&trial, 1);
    const struct hak_round idle[] = {{.wall_ns = 500000000, .allocator_ns = 1000},
                                     {.wall_ns = 500000000, .allocator_ns = 9000}};
    for (unsigned half = 0; half < 200; half++) {
        UNIT_CHECK(!hak_trial_note(&trial, idle));
    }
    UNIT_CHECK(trial.sequence.count == 0 && trial.idle_pairs == 100);
}

// A single thread is in one group: the other group's half is empty, and each value has one half.
static void one_thread_alone_is_compared_with_itself(void)
{
    struct hak_trial trial;
    hak_trial_start(&trial, 5);
    bool is_over = false;
    for (unsigned half = 0; !is_over && half < 2 * PAIRS_MOST; half++) {
        const struct hak_round groups[] = {{.wall_ns = 500000000},
                                           half_of(0.5, trial.swap == 1 ? 1 : 2)};
        is_over = hak_trial_note(&trial, groups);
    }
    UNIT_CHECK(trial.verdict == HAK_VERDICT_FIRST);
}

static void the_halves_of_a_pair_change_places(void)
{
    struct hak_trial trial;
    hak_trial_start(&trial, 7);
    const struct hak_round groups[HAK_VARIANTS] = {{.wall_ns = 1}, {.wall_ns = 1}};
    unsigned begun_swapped = 0;
    for (unsigned pair = 0; pair < 1000; pair++) {
        const uint32_t first = trial.swap;
        begun_swapped += first;
        hak_trial_note(&trial, groups);
        UNIT_CHECK(trial.swap == (first ^ 1));
        hak_trial_note(&trial, groups);
    }
    UNIT_CHECK(begun_swapped > 420 && begun_swapped < 580);
}

int main(void)
{
    the_dearer_value_loses();
    no_difference_is_seldom_taken_for_one();
    pairs_without_work_say_nothing();
    one_thread_alone_is_compared_with_itself();
    the_halves_of_a_pair_change_places();
    return 0;
}
