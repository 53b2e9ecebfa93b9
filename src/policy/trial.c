// trial.c -- see trial.h.
#include "policy/trial.h"

static uint32_t coin(struct hak_trial *trial)
{
    // Marsaglia's xorshift; its high bits are evenly distributed.
    trial->random ^= trial->random << 13;
    trial->random ^= trial->random >> 7;
    trial->random ^= trial->random << 17;
    return (uint32_t)(trial->random >> 40) & 1;
}

void hak_trial_start(struct hak_trial *trial, uint64_t seed)
{
    *trial = (struct hak_trial){.random = seed | 1};
    trial->swap = coin(trial);
}

static void round_add(struct hak_round *sum, const struct hak_round *more)
{
    sum->wall_ns += more->wall_ns;
    sum->processor_ns += more->processor_ns;
    sum->allocator_ns += more->allocator_ns;
    sum->faults += more->faults;
    sum->resident_bytes += more->resident_bytes;
}

// Resident memory counts by its mean over the two halves.
static double pair_score(const struct hak_round *sum)
{
    struct hak_round round = *sum;
    round.resident_bytes /= 2;
    return hak_score_of_round(&round);
}

static enum hak_verdict verdict_of(const struct hak_sequence *sequence)
{
    const struct hak_estimate estimate = hak_sequence_estimate(sequence);
    if (sequence->count < HAK_TRIAL_PAIRS_LEAST) {
        return HAK_VERDICT_NONE;
    }
    if (estimate.low > -HAK_TRIAL_SAME && estimate.high < HAK_TRIAL_SAME) {
        return HAK_VERDICT_SAME;
    }
    return estimate.high < 0  ? HAK_VERDICT_FIRST
           : estimate.low > 0 ? HAK_VERDICT_SECOND
                              : HAK_VERDICT_NONE;
}

static void pair_end(struct hak_trial *trial)
{
    const double first = pair_score(&trial->pair[0]);
    const double second = pair_score(&trial->pair[1]);
    if (first < 0 || second < 0 || first + second <= 0) {
        trial->idle_pairs++;
        return;
    }
    for (unsigned variant = 0; variant < HAK_VARIANTS; variant++) {
        round_add(&trial->total[variant], &trial->pair[variant]);
    }
    hak_sequence_note(&trial->sequence, hak_sequence_saving(first, second));
    trial->verdict = verdict_of(&trial->sequence);
}

bool hak_trial_note(struct hak_trial *trial, const struct hak_round groups[HAK_VARIANTS])
{
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        round_add(&trial->pair[group ^ trial->swap], &groups[group]);
    }
    if (trial->half == 0) {
        trial->half = 1;
        trial->swap ^= 1;
        return false;
    }
    pair_end(trial);
    trial->half = 0;
    trial->swap = coin(trial);
    trial->pair[0] = (struct hak_round){.wall_ns = 0};
    trial->pair[1] = (struct hak_round){.wall_ns = 0};
    return trial->verdict != HAK_VERDICT_NONE;
}
