// An interval that is valid at any moment: the truth is inside at all moments, 24 times in 25. If only a coin decides on the
// sign of a figure, that holds for any figures; and at most one sequence in 33 finds a difference between equal costs.
#include "../unit.h"
#include "noise.h"
#include "policy/sequence.h"

enum { SEQUENCES = 1000, FIGURES = 300 };

static void known_figures_have_their_known_interval(void)
{
    struct hak_sequence sequence = {.count = 0};
    struct hak_estimate estimate = hak_sequence_estimate(&sequence);
    UNIT_CHECK(estimate.low == -1 && estimate.high == 1);
    // Figures with a mean of 0.2 and a standard deviation of 0.1. After 100 of them
    // Q = 1 and part = 101 * (1 - (0.04^2 / 101)^(1 / 100)) = 10.6: half = (10.6 / (100 * 89.4))^0.5.
    for (unsigned i = 0; i < 100; i++) {
        hak_sequence_note(&sequence, i % 2 == 0 ? 0.1 : 0.3);
        estimate = hak_sequence_estimate(&sequence);
        UNIT_CHECK(i >= HAK_SEQUENCE_LEAST - 1 || (estimate.low == -1 && estimate.high == 1));
    }
    UNIT_CHECK(estimate.mean > 0.19999 && estimate.mean < 0.20001);
    UNIT_CHECK(estimate.high - estimate.mean > 0.0343 && estimate.high - estimate.mean < 0.0345);
    UNIT_CHECK(estimate.mean - estimate.low - (estimate.high - estimate.mean) < 1e-9);
    // Half as wide with about four times as many figures.
    for (unsigned i = 0; i < 400; i++) {
        hak_sequence_note(&sequence, i % 2 == 0 ? 0.1 : 0.3);
    }
    estimate = hak_sequence_estimate(&sequence);
    UNIT_CHECK(estimate.high - estimate.mean > 0.016 && estimate.high - estimate.mean < 0.018);
}

static void figures_that_are_all_the_same_leave_no_doubt(void)
{
    struct hak_sequence sequence = {.count = 0};
    for (unsigned i = 0; i < HAK_SEQUENCE_LEAST; i++) {
        hak_sequence_note(&sequence, -0.5);
    }
    const struct hak_estimate estimate = hak_sequence_estimate(&sequence);
    UNIT_CHECK(estimate.low > -0.5001 && estimate.high < -0.4999);
    UNIT_CHECK(hak_sequence_saving(0, 0) == 0 && hak_sequence_saving(3, 1) == 0.5 &&
               hak_sequence_saving(0, 5) == -1);
}

// At any moment: the interval is checked after each figure.
static unsigned sequences_that_exclude(double truth, double (*draw)(double))
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < SEQUENCES; i++) {
        struct hak_sequence sequence = {.count = 0};
        bool is_inside = true;
        for (unsigned j = 0; j < FIGURES && is_inside; j++) {
            hak_sequence_note(&sequence, draw(truth));
            const struct hak_estimate estimate = hak_sequence_estimate(&sequence);
            is_inside = estimate.low <= truth && estimate.high >= truth;
        }
        wrong += !is_inside;
    }
    return wrong;
}

static double draw_even(double mean)
{
    return mean + 0.2 * (2 * chance() - 1);
}

// Nearly normal.
static double draw_normal(double mean)
{
    return mean + 0.1 * (chance() + chance() + chance() + chance() - 2);
}

// Two rounds with the same cost, except for noise; rarely one costs four times as much.
static double draw_disturbed(double mean)
{
    const double first = chance() < 0.05 ? 4 : 1 + 0.3 * chance();
    const double second = chance() < 0.05 ? 4 : 1 + 0.3 * chance();
    return mean + hak_sequence_saving(first, second);
}

// A large figure now and then, and small ones of the other sign; but a coin decides which sign.
static double draw_skewed(double mean)
{
    const double figure = chance() < 0.02 ? 1 : -0.02;
    return chance() < 0.5 ? mean + figure : mean - figure;
}

static void the_truth_is_inside_at_all_moments(void)
{
    UNIT_CHECK(sequences_that_exclude(0, draw_even) <= SEQUENCES / 20);
    UNIT_CHECK(sequences_that_exclude(0.4, draw_even) <= SEQUENCES / 20);
    UNIT_CHECK(sequences_that_exclude(0.1, draw_normal) <= SEQUENCES / 20);
    UNIT_CHECK(sequences_that_exclude(0, draw_disturbed) <= SEQUENCES / 20);
    UNIT_CHECK(sequences_that_exclude(0, draw_skewed) <= SEQUENCES / 14);
}

// How often figures that differ only by their sign lead to a decision: computed exactly over all sequences, without sampling.
// `wins[k]`: the probability that k of the figures so far are above zero, and nothing is decided.
static double decided_by_a_coin(unsigned least, bool is_one_sided)
{
    static double wins[FIGURES + 1];
    static double next[FIGURES + 1];
    double decided = 0;
    memset(wins, 0, sizeof wins);
    wins[0] = 1;
    for (unsigned count = 1; count <= FIGURES; count++) {
        memset(next, 0, sizeof next);
        for (unsigned k = 0; k < count; k++) {
            next[k] += wins[k] / 2;
            next[k + 1] += wins[k] / 2;
        }
        for (unsigned k = 0; k <= count; k++) {
            const double mean = (2.0 * k - count) / count;
            const struct hak_sequence sequence = {count, mean, count * (1 - mean * mean)};
            const struct hak_estimate estimate = hak_sequence_estimate(&sequence);
            if (count >= least && (estimate.low > 0 || estimate.high < 0)) {
                decided += !is_one_sided || estimate.low > 0 ? next[k] : 0;
                next[k] = 0;
            }
        }
        memcpy(wins, next, sizeof wins);
    }
    return decided;
}

static void a_coin_decides_seldom(void)
{
    UNIT_CHECK(decided_by_a_coin(HAK_SEQUENCE_LEAST, true) <= 1 / 33.0);
    UNIT_CHECK(decided_by_a_coin(8, false) <= 1 / 20.0);
}

int main(void)
{
    known_figures_have_their_known_interval();
    figures_that_are_all_the_same_leave_no_doubt();
    the_truth_is_inside_at_all_moments();
    a_coin_decides_seldom();
    return 0;
}
