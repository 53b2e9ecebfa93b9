// sequence.h -- what one of two variants saves, from pairs of costs, with an interval that is valid at any moment.
//
// Threads   none: a pure state machine of its caller's. The command line compiles it, too (cli/lab).
//
// The usual confidence interval is valid at one moment that is fixed in advance. A test that looks again and again,
// and stops when the interval excludes zero, is wrong far more often than the interval says. This one is a confidence
// sequence: with probability 24 in 25 the true mean is inside at all moments, so a test may stop at any of them. It is
// Student's test made sequential: figures are taken as normal, with unknown mean and variance. (Lai, "On confidence
// sequences", 1976; Wang and Ramdas, "Anytime-valid t-tests", 2023.)
//
// If a coin decides which variant comes first in a pair, the figures need not be normal: if the variants cost the
// same, the coin alone decides the sign of a figure. Then at most one sequence in 33 names a given variant, from
// HAK_SEQUENCE_LEAST figures on, and one in 20 either of them, from eight on (docs/decisions/0044).
#pragma once

#include "base/compiler.h"

enum { HAK_SEQUENCE_LEAST = 6 }; // figures, before anything is decided by them

struct hak_sequence {
    uint64_t count;
    double mean;
    double squares; // sum of the squared distances from the mean
};

struct hak_estimate {
    double mean;
    double low;
    double high;
};

// What the second variant saves, as a part of both costs: from -1 to 1, above 0 when it is cheaper.
HAK_INLINE double hak_sequence_saving(double first, double second)
{
    return first + second > 0 ? (first - second) / (first + second) : 0;
}

// A new sequence is all zeros. `figure`: from -1 to 1.
HAK_INTERNAL void hak_sequence_note(struct hak_sequence *sequence, double figure);
HAK_INTERNAL struct hak_estimate hak_sequence_estimate(const struct hak_sequence *sequence);
