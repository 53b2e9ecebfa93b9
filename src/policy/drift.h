// drift.h -- has the distribution of sizes changed?
//
// Layer     policy
// Threads   none: pure functions.
//
// Two histograms of how many blocks of each size were asked for are compared by half the sum of the
// differences of their shares (total variation): 0 for the same, 1 for nothing in common. What chance
// alone makes of it, with few blocks and many sizes, is taken off.
#ifndef HAK_POLICY_DRIFT_H
#define HAK_POLICY_DRIFT_H

#include <stdint.h>

#include "base/compiler.h"
#include "meta/size_class.h"

enum { HAK_DRIFT_SIZES = HAK_SMALL_CLASSES + HAK_LARGE_BINS + 1 }; // the last: above all bins

struct hak_sizes {
    uint64_t blocks[HAK_DRIFT_SIZES];
};

#define HAK_DRIFT_MUCH         0.3
#define HAK_DRIFT_BLOCKS_LEAST 256 // of each histogram, for a judgement

// Beyond chance; 0 when there are too few blocks.
HAK_INTERNAL double hak_drift(const struct hak_sizes *before, const struct hak_sizes *now);

#endif
