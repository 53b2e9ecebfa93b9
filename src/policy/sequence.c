// sequence.c -- see sequence.h.
#include "policy/sequence.h"

#include "base/bits.h"
#include "policy/race.h"

#define LOG_2_BY_ERROR 3.6889 // of 2 / 0.05: wrong on either side in one of 20 sequences
#define LOG_2          0.6931
#define WEIGHT_MOST    0.75 // more bet on one figure would make a bound of a single one too wide

void hak_sequence_start(struct hak_sequence *sequence)
{
    *sequence = (struct hak_sequence){.count = 0};
}

// As if one figure in the middle had come before, with a variance of a quarter.
static double mean_of(const struct hak_sequence *sequence)
{
    return (0.5 + sequence->sum) / (double)(sequence->count + 1);
}

static double variance_of(const struct hak_sequence *sequence)
{
    return (0.25 + sequence->squares) / (double)(sequence->count + 1);
}

// How much is bet on the next figure: any rule is right that does not look at it. This one makes the interval
// narrow at all times alike; the logarithm to the next power of two is near enough for that.
static double next_weight(const struct hak_sequence *sequence)
{
    const double time = (double)(sequence->count + 1);
    const double log_time = LOG_2 * (hak_highest_bit(sequence->count + 2) + 1);
    const double weight =
        hak_square_root(2 * LOG_2_BY_ERROR / (variance_of(sequence) * time * log_time));
    return weight < WEIGHT_MOST ? weight : WEIGHT_MOST;
}

// (-log(1 - weight) - weight) / 4, by the series of the logarithm; what is left out of it is added as a
// geometric row that is larger.
#define TERMS 24
static double cost_of(double weight)
{
    double power = weight;
    double sum = 0;
    for (int term = 2; term <= TERMS; term++) {
        power *= weight;
        sum += power / term;
    }
    return (sum + power * weight / (1 - weight) / TERMS) / 4;
}

void hak_sequence_note(struct hak_sequence *sequence, double figure)
{
    const double bounded = figure < -1 ? -1 : figure > 1 ? 1 : figure;
    const double part = (bounded + 1) / 2;
    const double weight = next_weight(sequence);
    const double surprise = part - mean_of(sequence);
    sequence->weights += weight;
    sequence->weighted_sum += weight * part;
    sequence->spread += 4 * surprise * surprise * cost_of(weight);
    sequence->count++;
    sequence->sum += part;
    const double distance = part - mean_of(sequence);
    sequence->squares += distance * distance;
}

struct hak_estimate hak_sequence_estimate(const struct hak_sequence *sequence)
{
    if (sequence->count == 0) {
        return (struct hak_estimate){0, -1, 1};
    }
    const double mean = sequence->weighted_sum / sequence->weights;
    const double half = (LOG_2_BY_ERROR + sequence->spread) / sequence->weights;
    const double low = 2 * (mean - half) - 1;
    const double high = 2 * (mean + half) - 1;
    return (struct hak_estimate){2 * mean - 1, low < -1 ? -1 : low, high > 1 ? 1 : high};
}
