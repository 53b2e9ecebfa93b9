// drift.c -- see drift.h.
#include "policy/drift.h"

static uint64_t sum_of(const struct hak_sizes *sizes)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        sum += sizes->blocks[i];
    }
    return sum;
}

double hak_drift(const struct hak_sizes *before, const struct hak_sizes *now)
{
    const double all_before = (double)sum_of(before);
    const double all_now = (double)sum_of(now);
    if (all_before < HAK_DRIFT_BLOCKS_LEAST || all_now < HAK_DRIFT_BLOCKS_LEAST) {
        return 0;
    }
    double distance = 0;
    double chance = 0;
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        const double share = (double)before->blocks[i] / all_before;
        const double share_now = (double)now->blocks[i] / all_now;
        const double difference = share - share_now;
        distance += (difference < 0 ? -difference : difference) / 2;
        chance += (share + share_now) / 2 > 0 ? 1 : 0;
    }
    // With k sizes in use the mean of the distance between two samples of n blocks is at most
    // sqrt(k / (pi n)); blocks come in batches, of which some tens make one.
    const double fewer = all_before < all_now ? all_before : all_now;
    const double expected_square = chance / (3.14 * fewer / 32);
    return distance * distance > 4 * expected_square ? distance : 0;
}
