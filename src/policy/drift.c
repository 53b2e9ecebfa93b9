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

bool hak_drift_is_judged(const struct hak_sizes *sizes)
{
    return sizes->batches >= HAK_DRIFT_BATCHES_LEAST;
}

double hak_drift(const struct hak_sizes *before, const struct hak_sizes *now)
{
    const double all_before = (double)sum_of(before);
    const double all_now = (double)sum_of(now);
    if (!hak_drift_is_judged(before) || !hak_drift_is_judged(now)) {
        return 0;
    }
    double distance = 0;
    double below = 0;
    double below_now = 0;
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        below += (double)before->blocks[i] / all_before;
        below_now += (double)now->blocks[i] / all_now;
        const double apart = below < below_now ? below_now - below : below - below_now;
        distance = apart > distance ? apart : distance;
    }
    // The value that chance exceeds one time in a hundred. The blocks of a batch have one size: they count as one.
    const double critical_square =
        HAK_DRIFT_SURE * HAK_DRIFT_SURE * (1 / (double)before->batches + 1 / (double)now->batches);
    return distance * distance > critical_square ? distance : 0;
}
