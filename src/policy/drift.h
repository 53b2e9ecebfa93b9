// drift.h -- has the distribution of sizes changed?
//
// Threads   none: pure functions.
//
// Two histograms of requested sizes are compared by Kolmogorov and Smirnov's statistic, the largest difference of
// the shares up to any size: 0 for the same, 1 for nothing in common. Which of some neighbouring sizes the slow
// paths see is mostly chance. But if all sizes are larger, or smaller, the program has changed. A difference that
// chance alone can explain counts as 0.
#pragma once

#include "base/compiler.h"
#include "meta/size_class.h"

enum { HAK_DRIFT_SIZES = HAK_SMALL_CLASSES + HAK_LARGE_BINS + 1 }; // the last: above all bins

struct hak_sizes {
    uint64_t blocks[HAK_DRIFT_SIZES];
    uint64_t batches; // in which the blocks came
};

#define HAK_DRIFT_MUCH          0.4
#define HAK_DRIFT_BATCHES_LEAST 32   // of each histogram, for a judgement
#define HAK_DRIFT_SURE          1.63 // of the statistic: exceeded by chance one time in a hundred

// Are there enough batches for a judgement?
HAK_INTERNAL bool hak_drift_is_judged(const struct hak_sizes *sizes);
// The statistic; 0 when chance can explain it, or when there are too few batches.
HAK_INTERNAL double hak_drift(const struct hak_sizes *before, const struct hak_sizes *now);
