// learner.c -- see learner.h.
#include "policy/learner.h"

static void sizes_add(struct hak_sizes *sum, const struct hak_sizes *more)
{
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        sum->blocks[i] += more->blocks[i];
    }
    sum->batches += more->batches;
}

static void turn_start(struct hak_learner *learner)
{
    const uint32_t turn = hak_race_turn(&learner->race);
    learner->is_rest =
        turn != 0 && learner->race.state == HAK_RACE_LAPS && hak_budget_is_low(&learner->budget);
    learner->strategy = learner->is_rest ? 0 : turn;
}

static void race_begin(struct hak_learner *learner)
{
    learner->state = HAK_LEARNER_RACING;
    learner->rounds = 0;
    learner->ticks = 0;
    learner->budget.baseline = 0;
    turn_start(learner);
}

static void learn(struct hak_learner *learner)
{
    learner->is_quick = learner->races > 0 || learner->rounds > HAK_FIRST_ROUNDS;
    hak_race_start(&learner->race, learner->now.relevant, ++learner->races);
    race_begin(learner);
}

// The phase with the most similar sizes in which all of `relevant` was relevant, too; or NULL.
static struct hak_phase *phase_like(struct hak_learner *learner,
                                    const struct hak_sizes *sizes,
                                    uint32_t relevant)
{
    struct hak_phase *nearest = NULL;
    double least = HAK_DRIFT_MUCH;
    for (unsigned i = 0; i < HAK_PHASES && i < learner->phase_count; i++) {
        const double drift = hak_drift(&learner->phases[i].sizes, sizes);
        if (drift <= least && (relevant & ~learner->phases[i].relevant) == 0) {
            least = drift;
            nearest = &learner->phases[i];
        }
    }
    return nearest;
}

static void freeze(struct hak_learner *learner)
{
    learner->state = HAK_LEARNER_FROZEN;
    learner->strategy = learner->now.winner;
    learner->rounds = 0;
    learner->decided++;
}

static void decide(struct hak_learner *learner)
{
    learner->now.winner = learner->race.winner;
    learner->now.candidate = learner->race.candidate;
    learner->now.duel = learner->race.duel;
    if (hak_drift_is_judged(&learner->now.sizes)) {
        struct hak_phase *place = phase_like(learner, &learner->now.sizes, 0);
        if (place == NULL) {
            place = &learner->phases[learner->phase_count++ % HAK_PHASES];
        }
        *place = learner->now;
    }
    freeze(learner);
}

static void note_round(struct hak_learner *learner, double score, uint32_t ticks)
{
    const uint32_t laps = learner->is_quick ? HAK_LAPS_TICKS_QUICK : HAK_LAPS_TICKS;
    const uint32_t all = learner->is_quick ? HAK_RACE_TICKS_QUICK : HAK_RACE_TICKS;
    struct hak_race *race = &learner->race;
    hak_budget_note(&learner->budget, learner->strategy == 0, score, ticks);
    learner->ticks += ticks;
    if (!learner->is_rest) {
        hak_race_note(race, score, ticks < HAK_ROUND_TICKS);
    }
    if (learner->ticks >= laps) {
        hak_race_end_laps(race);
    }
    if (learner->ticks >= all && race->duel.count >= HAK_SEQUENCE_LEAST) {
        hak_race_end(race);
    }
    if (race->state == HAK_RACE_OVER) {
        decide(learner);
    } else {
        turn_start(learner);
    }
}

static bool has_drifted(const struct hak_learner *learner)
{
    return hak_drift(&learner->now.sizes, &learner->window.sizes) > HAK_DRIFT_MUCH;
}

// A window in which nothing was relevant says nothing; after two of them the count of changed windows begins anew.
// While racing, the sizes of all windows are added up, except of those that may be the next phase.
static bool is_in_another_phase(struct hak_learner *learner)
{
    const struct hak_window *window = &learner->window;
    const bool is_racing = learner->state == HAK_LEARNER_RACING;
    if (window->relevant == 0) {
        if (++learner->quiet_windows >= HAK_PHASE_WINDOWS) {
            learner->changed_windows = 0;
        }
        return false;
    }
    learner->quiet_windows = 0;
    if (has_drifted(learner) || (!is_racing && (window->relevant & ~learner->now.relevant) != 0)) {
        learner->changed_windows++;
    } else {
        learner->changed_windows = 0;
        if (is_racing) {
            sizes_add(&learner->now.sizes, &window->sizes);
        }
    }
    return learner->changed_windows >= HAK_PHASE_WINDOWS;
}

// Begin another phase. True when the present round no longer counts.
static bool phase_begin(struct hak_learner *learner)
{
    const struct hak_window *window = &learner->window;
    const struct hak_phase *known = phase_like(learner, &window->sizes, window->relevant);
    learner->changed_windows = 0;
    if (known != NULL) {
        learner->now = *known;
        learner->recalled++;
        freeze(learner);
    } else if (learner->state == HAK_LEARNER_FROZEN) {
        const uint32_t before = has_drifted(learner) ? 0 : learner->now.relevant;
        learner->now =
            (struct hak_phase){.sizes = window->sizes, .relevant = window->relevant | before};
        learn(learner);
    } else {
        // The race goes on; else nothing would be learned in a program that changes often.
        learner->now.sizes = window->sizes;
        return false;
    }
    return true;
}

// Add the round to the window, and judge a full window. True when the round no longer counts.
static bool note_window(struct hak_learner *learner,
                        const struct hak_sizes *sizes,
                        uint32_t relevant)
{
    struct hak_window *window = &learner->window;
    sizes_add(&window->sizes, sizes);
    window->relevant |= relevant;
    if (++window->rounds < HAK_WINDOW_ROUNDS || !hak_drift_is_judged(&window->sizes)) {
        return false;
    }
    const bool is_over = is_in_another_phase(learner) && phase_begin(learner);
    *window = (struct hak_window){.rounds = 0};
    return is_over;
}

bool hak_learner_is_enough(const struct hak_learner *learner, double score, uint32_t ticks)
{
    const bool is_tried = learner->state == HAK_LEARNER_RACING &&
                          learner->race.state == HAK_RACE_LAPS && learner->strategy != 0;
    return ticks >= HAK_ROUND_TICKS ||
           (is_tried && score >= 0 && hak_budget_is_over(&learner->budget, score, ticks));
}

void hak_learner_note(struct hak_learner *learner,
                      double score,
                      uint32_t ticks,
                      const struct hak_sizes *sizes,
                      uint32_t relevant)
{
    learner->rounds++;
    if (note_window(learner, sizes, relevant)) {
        return;
    }
    if (learner->state == HAK_LEARNER_FROZEN) {
        hak_budget_save(&learner->budget, ticks);
        if (learner->rounds >= HAK_FROZEN_ROUNDS && learner->now.winner != 0) {
            hak_race_doubt(&learner->race, learner->now.winner);
            race_begin(learner);
        }
    } else if (score >= 0) { // else the program was idle: the same strategy once more
        note_round(learner, score, ticks);
    }
}
