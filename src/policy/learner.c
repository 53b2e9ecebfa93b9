// learner.c -- see learner.h.
#include "policy/learner.h"

static void sizes_add(struct hak_sizes *sum, const struct hak_sizes *more)
{
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        sum->blocks[i] += more->blocks[i];
    }
}

static void learn(struct hak_learner *learner, uint32_t strategies, const uint16_t *milder)
{
    learner->state = HAK_LEARNER_LEARNING;
    learner->rounds = 0;
    learner->frozen_sizes = (struct hak_sizes){{0}};
    hak_race_start(&learner->race, strategies, milder, ++learner->races);
    learner->strategy = hak_race_turn(&learner->race);
}

void hak_learner_start(struct hak_learner *learner, uint32_t strategies, const uint16_t *milder)
{
    *learner = (struct hak_learner){.state = HAK_LEARNER_LEARNING};
    learn(learner, strategies, milder);
}

static void freeze(struct hak_learner *learner, uint32_t winner)
{
    learner->state = HAK_LEARNER_FROZEN;
    learner->rounds = 0;
    learner->drift_looks = 0;
    learner->winner = winner;
    learner->strategy = winner;
    learner->recent_sizes = (struct hak_sizes){{0}};
}

// Baseline first, winner first, and so on.
static uint32_t canary_strategy(const struct hak_learner *learner)
{
    const uint32_t rounds = learner->canary.rounds;
    return (rounds / 2 + rounds) % 2 == 0 ? 0 : learner->winner;
}

static void canary(struct hak_learner *learner)
{
    learner->state = HAK_LEARNER_CANARY;
    learner->rounds = 0;
    learner->canary = (struct hak_canary){.rounds = 0};
    learner->strategy = canary_strategy(learner);
}

static void note_learning(struct hak_learner *learner, double score, uint32_t ticks)
{
    if (!hak_race_note(&learner->race, score, ticks)) {
        learner->strategy = hak_race_turn(&learner->race);
        return;
    }
    learner->winner = hak_race_leader(&learner->race);
    learner->rival = hak_race_best(&learner->race);
    hak_race_gain(&learner->race, learner->rival, &learner->gain, &learner->interval);
    if (learner->winner == 0) {
        freeze(learner, 0);
    } else {
        canary(learner);
    }
}

static void canary_judge(struct hak_learner *learner)
{
    const struct hak_canary *canary = &learner->canary;
    const double pairs = HAK_CANARY_PAIRS;
    const double mean = canary->gain_sum / pairs;
    const double variance = (canary->gain_square - mean * mean * pairs) / (pairs - 1);
    learner->gain = mean;
    learner->interval = HAK_CANARY_SURE * hak_square_root(variance / pairs);
    freeze(learner, learner->gain > learner->interval ? learner->winner : 0);
}

static void note_canary(struct hak_learner *learner, double score)
{
    struct hak_canary *canary = &learner->canary;
    if (canary->rounds++ % 2 == 0) {
        canary->first = score;
    } else {
        const double lead = learner->strategy == 0 ? score - canary->first : canary->first - score;
        const double mean = (score + canary->first) / 2;
        const double gain = mean > 0 ? lead / mean : 0;
        canary->gain_sum += gain;
        canary->gain_square += gain * gain;
    }
    learner->strategy = canary_strategy(learner);
    if (canary->rounds == 2 * HAK_CANARY_PAIRS) {
        canary_judge(learner);
    }
}

static void note_frozen(struct hak_learner *learner, const struct hak_sizes *sizes)
{
    sizes_add(&learner->recent_sizes, sizes);
    if (learner->rounds % HAK_DRIFT_ROUNDS != 0) {
        return;
    }
    learner->drift = hak_drift(&learner->frozen_sizes, &learner->recent_sizes);
    learner->recent_sizes = (struct hak_sizes){{0}};
    learner->drift_looks = learner->drift > HAK_DRIFT_MUCH ? learner->drift_looks + 1 : 0;
    if (learner->drift_looks == HAK_DRIFT_LOOKS) {
        learner->reopened++;
        learn(learner, learner->race.count, learner->race.milder);
    } else if (learner->rounds >= HAK_FROZEN_ROUNDS && learner->winner != 0) {
        canary(learner);
    }
}

bool hak_learner_is_enough(const struct hak_learner *learner, double score, uint32_t ticks)
{
    return ticks >= HAK_ROUND_TICKS || (learner->state == HAK_LEARNER_LEARNING && score >= 0 &&
                                        hak_race_is_too_dear(&learner->race, score, ticks));
}

void hak_learner_note(struct hak_learner *learner,
                      double score,
                      uint32_t ticks,
                      const struct hak_sizes *sizes)
{
    learner->rounds++;
    if (learner->state == HAK_LEARNER_FROZEN) {
        note_frozen(learner, sizes);
        return;
    }
    sizes_add(&learner->frozen_sizes, sizes);
    if (score < 0) {
        return; // the program was idle: the same strategy once more
    }
    if (learner->state == HAK_LEARNER_LEARNING) {
        note_learning(learner, score, ticks);
    } else {
        note_canary(learner, score);
    }
}
