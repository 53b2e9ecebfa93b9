// sequence.h -- the mean of noisy figures, with an interval that may be looked at after each of them.
//
// Layer     policy
// Threads   none: a pure state machine of its caller's.
//
// The usual interval is right at one moment that was fixed before; who looks again and again, and stops when it
// excludes zero, is wrong far more often than it says. This one is a confidence sequence: with probability 19 in 20
// the true mean is inside at all moments together, so one may stop at any of them. It assumes only that the
// figures are from -1 to 1 and that their mean, given those before, is the same each time: no
// distribution, no number of figures. (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
// betting", 2024: the empirical Bernstein one, theorem 2.)
#ifndef HAK_POLICY_SEQUENCE_H
#define HAK_POLICY_SEQUENCE_H

#include <stdint.h>

#include "base/compiler.h"

// All of figures moved to 0 … 1.
struct hak_sequence {
    uint64_t count;
    double sum;
    double squares;      // of each one's distance from the mean with it
    double weights;      // how much was bet on each
    double weighted_sum; // of them
    double spread;       // what of the interval comes from their distance from the mean before
};

struct hak_estimate {
    double mean; // the middle of the interval
    double low;
    double high;
};

HAK_INTERNAL void hak_sequence_start(struct hak_sequence *sequence);
// `figure`: from -1 to 1.
HAK_INTERNAL void hak_sequence_note(struct hak_sequence *sequence, double figure);
HAK_INTERNAL struct hak_estimate hak_sequence_estimate(const struct hak_sequence *sequence);

#endif
