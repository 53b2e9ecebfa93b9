// drift.h -- has the distribution of sizes changed?
//
// Layer     policy
// Threads   none: pure functions.
//
// Two histograms of how many blocks of each size were asked for are compared by the largest difference of the
// shares up to any size: 0 for the same, 1 for nothing in common (Kolmogorov and Smirnov's statistic). Which of
// some neighbouring sizes the slow paths see is mostly chance; sizes that are all larger, or smaller, are
// another program. What chance alone makes of it, with few blocks, is taken off.
#pragma once

#include "base/compiler.h"
#include "meta/size_class.h"

enum { HAK_DRIFT_SIZES = HAK_SMALL_CLASSES + HAK_LARGE_BINS + 1 }; // the last: above all bins

struct hak_sizes {
    uint64_t blocks[HAK_DRIFT_SIZES];
    uint64_t batches; // in which they came
};

#define HAK_DRIFT_MUCH          0.4
#define HAK_DRIFT_BATCHES_LEAST 32   // of each histogram, for a judgement
#define HAK_DRIFT_SURE          1.63 // of the statistic: exceeded by chance one time in a hundred

// Are there enough for a judgement?
HAK_INTERNAL bool hak_drift_is_judged(const struct hak_sizes *sizes);
// Beyond chance; 0 when there are too few blocks.
HAK_INTERNAL double hak_drift(const struct hak_sizes *before, const struct hak_sizes *now);
