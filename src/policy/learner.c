// learner.c -- see learner.h.
#include "policy/learner.h"

static void sizes_add(struct hak_sizes *sum, const struct hak_sizes *more)
{
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        sum->blocks[i] += more->blocks[i];
    }
    sum->batches += more->batches;
}

static void look_start(struct hak_learner *learner)
{
    learner->recent = (struct hak_look){.rounds = 0};
}

static void learn(struct hak_learner *learner, uint32_t strategies, const uint16_t *milder)
{
    learner->state = HAK_LEARNER_LEARNING;
    learner->rounds = 0;
    learner->now = (struct hak_lesson){.winner = 0};
    hak_race_start(&learner->race, strategies, milder, ++learner->races);
    learner->strategy = hak_race_turn(&learner->race);
}

// The same in a later phase.
static void learn_again(struct hak_learner *learner, const struct hak_look *look)
{
    learn(learner, learner->race.count, learner->race.milder);
    learner->now.sizes = look->sizes;
    learner->now.matter = look->matter;
    hak_race_hurry(&learner->race, look->matter, learner->saved);
    learner->strategy = hak_race_turn(&learner->race);
    learner->saved = 0;
}

void hak_learner_start(struct hak_learner *learner, uint32_t strategies, const uint16_t *milder)
{
    *learner = (struct hak_learner){.state = HAK_LEARNER_LEARNING};
    learn(learner, strategies, milder);
    look_start(learner);
}

// What was decided when the sizes were like these and no less mattered, or NULL.
static struct hak_lesson *lesson_for(struct hak_learner *learner,
                                     const struct hak_sizes *sizes,
                                     uint32_t matter)
{
    struct hak_lesson *nearest = NULL;
    double least = HAK_DRIFT_MUCH;
    for (unsigned i = 0; i < HAK_LESSONS && i < learner->lesson_count; i++) {
        const double drift = hak_drift(&learner->lessons[i].sizes, sizes);
        if (drift <= least && (matter & ~learner->lessons[i].matter) == 0) {
            least = drift;
            nearest = &learner->lessons[i];
        }
    }
    return nearest;
}

static void rest(struct hak_learner *learner)
{
    learner->state = HAK_LEARNER_FROZEN;
    learner->strategy = learner->now.winner;
    learner->rounds = 0;
    learner->decided++;
}

static void freeze(struct hak_learner *learner, uint32_t winner)
{
    learner->now.winner = winner;
    if (hak_sizes_tell(&learner->now.sizes)) {
        struct hak_lesson *place = lesson_for(learner, &learner->now.sizes, 0);
        if (place == NULL) {
            place = &learner->lessons[learner->lesson_count++ % HAK_LESSONS];
        }
        *place = learner->now;
    }
    rest(learner);
}

// Baseline first, winner first, and so on.
static uint32_t canary_strategy(const struct hak_learner *learner)
{
    const uint32_t rounds = learner->canary.rounds;
    return (rounds / 2 + rounds) % 2 == 0 ? 0 : learner->now.winner;
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
    struct hak_lesson *now = &learner->now;
    now->winner = hak_race_leader(&learner->race);
    now->rival = hak_race_best(&learner->race);
    now->laps = learner->race.laps;
    hak_race_gain(&learner->race, now->rival, &now->gain, &now->interval);
    if (now->winner == 0) {
        freeze(learner, 0);
    } else {
        canary(learner);
    }
}

static void canary_judge(struct hak_learner *learner)
{
    const struct hak_canary *canary = &learner->canary;
    const bool is_last = canary->rounds == 2 * HAK_CANARY_PAIRS;
    const double pairs = canary->rounds / 2;
    const double mean = canary->gain_sum / pairs;
    const double variance = (canary->gain_square - mean * mean * pairs) / (pairs - 1);
    struct hak_lesson *now = &learner->now;
    now->gain = mean;
    now->interval =
        (is_last ? HAK_CANARY_SURE : HAK_CANARY_SURE_FEW) * hak_square_root(variance / pairs);
    if (is_last || now->gain > now->interval || now->gain < 0) {
        freeze(learner, now->gain > now->interval ? now->winner : 0);
    }
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
    if (canary->rounds == 2 * HAK_CANARY_PAIRS_FEW || canary->rounds == 2 * HAK_CANARY_PAIRS) {
        canary_judge(learner);
    }
}

// Does the program do something else than what is learned, or was? A look in which nothing mattered does not tell,
// and after two of them what is in force may stay. What the program does is added up while it is learned, but for
// what may be the next phase.
static bool has_drifted(struct hak_learner *learner)
{
    const struct hak_look *recent = &learner->recent;
    const bool is_frozen = learner->state == HAK_LEARNER_FROZEN;
    learner->drift = hak_drift(&learner->now.sizes, &recent->sizes);
    const bool is_other = learner->drift > HAK_DRIFT_MUCH ||
                          (is_frozen && (recent->matter & ~learner->now.matter) != 0);
    learner->quiet_looks = recent->matter == 0 ? learner->quiet_looks + 1 : 0;
    if (learner->quiet_looks == HAK_DRIFT_LOOKS) {
        learner->drift_looks = 0;
    }
    if (learner->quiet_looks > 0) {
        return false;
    }
    learner->drift_looks = is_other ? learner->drift_looks + 1 : 0;
    if (!is_other && !is_frozen) {
        sizes_add(&learner->now.sizes, &recent->sizes);
    }
    return learner->drift_looks == HAK_DRIFT_LOOKS;
}

// It does. True when the round counts for nothing with that.
static bool turn_to(struct hak_learner *learner, const struct hak_look *look)
{
    const struct hak_lesson *known = lesson_for(learner, &look->sizes, look->matter);
    learner->drift_looks = 0;
    if (known != NULL) {
        learner->now = *known;
        learner->recalled++;
        rest(learner);
    } else if (learner->state == HAK_LEARNER_FROZEN) {
        learn_again(learner, look);
    } else {
        // The race goes on, or a program that changes often would learn nothing.
        learner->now.sizes = look->sizes;
        return false;
    }
    return true;
}

// Every 400 ms, when there were enough blocks to tell. True when the round counts for nothing.
static bool look(struct hak_learner *learner, const struct hak_sizes *sizes, uint32_t matter)
{
    struct hak_look *recent = &learner->recent;
    sizes_add(&recent->sizes, sizes);
    recent->matter |= matter;
    if (++recent->rounds < HAK_DRIFT_ROUNDS || !hak_sizes_tell(&recent->sizes)) {
        return false;
    }
    const bool is_over = has_drifted(learner) && turn_to(learner, recent);
    look_start(learner);
    return is_over;
}

bool hak_learner_is_enough(const struct hak_learner *learner, double score, uint32_t ticks)
{
    return ticks >= HAK_ROUND_TICKS || (learner->state == HAK_LEARNER_LEARNING && score >= 0 &&
                                        hak_race_is_too_dear(&learner->race, score, ticks));
}

void hak_learner_note(struct hak_learner *learner,
                      double score,
                      uint32_t ticks,
                      const struct hak_sizes *sizes,
                      uint32_t matter)
{
    learner->rounds++;
    if (look(learner, sizes, matter)) {
        return;
    }
    if (learner->state == HAK_LEARNER_FROZEN) {
        learner->saved += HAK_RACE_BUDGET * ticks;
        if (learner->rounds >= HAK_FROZEN_ROUNDS && learner->now.winner != 0) {
            canary(learner);
        }
        return;
    }
    if (score < 0) {
        return; // the program was idle: the same strategy once more
    }
    if (learner->state == HAK_LEARNER_LEARNING) {
        learner->now.matter |= matter;
        hak_race_admit(&learner->race, matter);
        note_learning(learner, score, ticks);
    } else {
        note_canary(learner, score);
    }
}
