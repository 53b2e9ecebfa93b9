// sequence.c -- see sequence.h.
#include "policy/sequence.h"

#include "base/bits.h"

#define LOG_2          0.69314718
#define LOG_2_OF_ERROR 6.43775165 // 2 log 25: one sequence in 25 excludes the true mean

// The sweeper's thread has no mathematical library. These three are right to six digits for the values that occur here.
static double logarithm(double value)
{
    const unsigned twos = hak_highest_bit((uint64_t)value);
    const double rest = value / (double)(UINT64_C(1) << twos); // from 1 to 2
    const double part = (rest - 1) / (rest + 1);
    double sum = 0;
    for (int term = 15; term > 0; term -= 2) {
        sum = sum * part * part + 2.0 / term;
    }
    return twos * LOG_2 + sum * part;
}

static double exponential(double power)
{
    double sum = 1;
    for (int term = 20; term > 0; term--) {
        sum = 1 + sum * power / term;
    }
    return sum;
}

static double square_root(double value)
{
    double root = value > 1 ? value : 1;
    for (unsigned i = 0; i < 40; i++) {
        root = (root + value / root) / 2;
    }
    return root;
}

void hak_sequence_note(struct hak_sequence *sequence, double figure)
{
    const double distance = figure - sequence->mean;
    sequence->count++;
    sequence->mean += distance / (double)sequence->count;
    sequence->squares += distance * (figure - sequence->mean);
}

// A mean m is inside while the likelihood of the figures under m is at least a 25th of their mean likelihood under a
// normal prior for the distance from m, in standard deviations, of variance 1. The unknown deviation is integrated out.
// This solves that quadratic inequality for m.
struct hak_estimate hak_sequence_estimate(const struct hak_sequence *sequence)
{
    const double count = (double)sequence->count;
    const double mean = sequence->mean;
    const struct hak_estimate unknown = {mean, -1, 1};
    if (sequence->count < HAK_SEQUENCE_LEAST) {
        return unknown;
    }
    const double part =
        (1 - exponential(-(logarithm(count + 1) + LOG_2_OF_ERROR) / count)) * (count + 1);
    const double half = square_root(part * sequence->squares / (count * (count - part)));
    const double low = mean - half;
    const double high = mean + half;
    return (struct hak_estimate){mean, low < -1 ? -1 : low, high > 1 ? 1 : high};
}
