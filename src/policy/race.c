// race.c -- see race.h.
#include "policy/race.h"

// Points that a rating can gain in a game, less the more have been played.
#define ELO_STEP_FIRST 40.0
#define ELO_STEP_LEAST 8.0
#define SURE           2.0 // standard errors
#define NOISE_LEAST    0.002
#define MOST           2.0 // that a score can be, in medians
#define FOLLOWS        4 // scores, of which the last makes up so much of the baseline's recent one

static uint64_t draw(struct hak_race *race)
{
    race->random = race->random * 6364136223846793005U + 1442695040888963407U; // Knuth, MMIX
    return race->random >> 33;
}

static double mean_of(const struct hak_runner *runner)
{
    return runner->rounds > 0 ? runner->relative_sum / runner->rounds : 1;
}

// Of one round, by those of a mask together: each has too few for a variance of its own.
static double round_variance(const struct hak_race *race, uint32_t runners)
{
    double sum = 0;
    uint32_t freedom = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        const struct hak_runner *runner = &race->runners[i];
        if ((runners >> i & 1) != 0 && runner->rounds > 1) {
            const double mean = mean_of(runner);
            sum += runner->relative_sum2 - mean * mean * runner->rounds;
            freedom += runner->rounds - 1;
        }
    }
    const double variance = freedom > 0 ? sum / freedom : 1;
    return variance > NOISE_LEAST * NOISE_LEAST ? variance : NOISE_LEAST * NOISE_LEAST;
}

double hak_square_root(double value)
{
    double root = value > 1 ? value : 1;
    for (unsigned i = 0; i < 40; i++) {
        root = (root + value / root) / 2;
    }
    return root;
}

// What `better` is expected to score against one with so many points less: 1 / (1 + 10^(-lead / 400)).
static double expected(double lead)
{
    double power = 1 - lead * (2.302585 / 400) / 1024; // e^x as (1 + x / 1024)^1024
    power = power > 0 ? power : 0;
    for (unsigned i = 0; i < 10; i++) {
        power *= power;
    }
    return 1 / (1 + power);
}

static double elo_step(const struct hak_runner *runner)
{
    const double step = ELO_STEP_FIRST / (1 + runner->games / 16.0);
    return step > ELO_STEP_LEAST ? step : ELO_STEP_LEAST;
}

static void play_game(struct hak_race *race,
                      const struct hak_turn *turn,
                      const struct hak_turn *other,
                      double noise)
{
    struct hak_runner *a = &race->runners[turn->runner];
    struct hak_runner *b = &race->runners[other->runner];
    const double lead = (other->score - turn->score) / ((turn->score + other->score) / 2);
    const double result = lead > noise ? 1 : lead < -noise ? 0 : 0.5; // less is better
    const double surprise = result - expected(a->rating - b->rating);
    a->rating += elo_step(a) * surprise;
    b->rating -= elo_step(b) * surprise;
    a->games++;
    b->games++;
}

static uint32_t rounds_least(const struct hak_race *race)
{
    return race->is_quick ? 1 : HAK_RACE_ROUNDS_LEAST;
}

uint32_t hak_race_best(const struct hak_race *race)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < race->count; i++) {
        const struct hak_runner *runner = &race->runners[i];
        if (!runner->is_out && runner->rounds >= rounds_least(race) &&
            mean_of(runner) < mean_of(&race->runners[best])) {
            best = i;
        }
    }
    return best;
}

static double error_between(const struct hak_race *race, uint32_t a, uint32_t b)
{
    const double rounds_a = race->runners[a].rounds > 0 ? race->runners[a].rounds : 1;
    const double rounds_b = race->runners[b].rounds > 0 ? race->runners[b].rounds : 1;
    // Those that are far dearer may be far noisier, too: they do not say how sure this is.
    const double variance = round_variance(race, 1U | 1U << a | 1U << b);
    return SURE * hak_square_root(variance * (1 / rounds_a + 1 / rounds_b));
}

static bool is_admitted(const struct hak_race *race, uint32_t runner)
{
    return runner == 0 || (race->matter >> runner & 1) != 0;
}

// All that it goes further than, and that make a difference, have played, and none is worse than the baseline by
// a standard error.
static bool may_play(const struct hak_race *race, uint32_t runner)
{
    for (uint32_t i = 0; i < race->count; i++) {
        const struct hak_runner *milder = &race->runners[i];
        if ((race->milder[runner] & race->matter) >> i & 1 &&
            (milder->rounds == 0 ||
             mean_of(milder) - mean_of(&race->runners[0]) > error_between(race, i, 0) / SURE)) {
            return false;
        }
    }
    return is_admitted(race, runner) && !race->runners[runner].is_out;
}

static void lap_start(struct hak_race *race)
{
    race->place = 0;
    race->in_lap = 0;
    race->turn_count = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        if (may_play(race, i)) {
            const uint32_t other = (uint32_t)(draw(race) % (race->in_lap + 1));
            race->order[race->in_lap++] = race->order[other];
            race->order[other] = (uint8_t)i;
        }
    }
    for (uint32_t i = 1; i < race->in_lap && race->ticks == 0; i++) {
        if (race->order[i] == 0) { // the others' costs are told by the baseline's: it begins
            race->order[i] = race->order[0];
            race->order[0] = 0;
        }
    }
}

static void turn_start(struct hak_race *race)
{
    race->is_rest = race->order[race->place] != 0 && race->purse < HAK_RACE_STAKE;
}

void hak_race_start(struct hak_race *race, uint32_t count, const uint16_t *milder, uint64_t seed)
{
    *race = (struct hak_race){.count = count, .milder = milder, .random = seed};
    for (uint32_t i = 0; i < count; i++) {
        race->runners[i].rating = 1500;
    }
    lap_start(race);
    turn_start(race);
}

void hak_race_hurry(struct hak_race *race, uint32_t runners, double saved)
{
    race->is_quick = true;
    race->matter = runners;
    race->purse = saved < HAK_RACE_SAVED ? saved : HAK_RACE_SAVED;
    lap_start(race);
    turn_start(race);
}

void hak_race_admit(struct hak_race *race, uint32_t runners)
{
    race->matter |= runners;
}

uint32_t hak_race_turn(const struct hak_race *race)
{
    return race->is_rest ? 0 : race->order[race->place];
}

// What the score is above the baseline's, as a part of the processor time: a score is what the
// allocator costs by the rest.
static double loss_of(const struct hak_race *race, double score)
{
    return score / (1 + score) - race->baseline / (1 + race->baseline);
}

bool hak_race_is_too_dear(const struct hak_race *race, double score, uint32_t ticks)
{
    return hak_race_turn(race) != 0 && loss_of(race, score) * ticks > race->purse;
}

static double lap_median(const struct hak_race *race)
{
    double sorted[HAK_RACE_TICKS];
    for (uint32_t i = 0; i < race->turn_count; i++) {
        const double score = race->turns[i].score;
        uint32_t place = i;
        for (; place > 0 && sorted[place - 1] > score; place--) {
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = score;
    }
    return (sorted[(race->turn_count - 1) / 2] + sorted[race->turn_count / 2]) / 2;
}

static void lap_end(struct hak_race *race)
{
    race->laps++;
    if (race->in_lap == 1) {
        return; // the baseline alone is compared with nobody
    }
    const double median = lap_median(race);
    for (uint32_t i = 0; i < race->turn_count; i++) {
        struct hak_runner *runner = &race->runners[race->turns[i].runner];
        const double score = race->turns[i].score;
        const double relative = median <= 0 ? 1 : score < MOST * median ? score / median : MOST;
        runner->rounds++;
        runner->relative_sum += relative;
        runner->relative_sum2 += relative * relative;
    }
    const double noise = hak_square_root(2 * round_variance(race, ~0U));
    for (uint32_t i = 0; i < race->turn_count; i++) {
        for (uint32_t j = i + 1; j < race->turn_count; j++) {
            if (race->turns[i].runner != race->turns[j].runner) {
                play_game(race, &race->turns[i], &race->turns[j], noise);
            }
        }
    }
}

static bool is_beaten(const struct hak_race *race, uint32_t runner, uint32_t best)
{
    const struct hak_runner *one = &race->runners[runner];
    return one->rounds >= HAK_RACE_ROUNDS_LEAST &&
           mean_of(one) - mean_of(&race->runners[best]) > error_between(race, runner, best);
}

// A mask of the one, if it is out and no better than the baseline: what goes further would be no better.
static uint32_t harm_of(const struct hak_race *race, uint32_t runner)
{
    const struct hak_runner *one = &race->runners[runner];
    const bool is_worse = one->rounds == 0 || mean_of(one) > mean_of(&race->runners[0]);
    return (uint32_t)(one->is_out && is_worse) << runner;
}

// Returns how many are left that may be the best. The baseline is never out: the others are measured by it.
static uint32_t drop_losers(struct hak_race *race)
{
    const uint32_t best = hak_race_best(race);
    uint32_t left = !is_beaten(race, 0, best);
    uint32_t harmful = 0; // a mask; a milder one has the smaller number
    for (uint32_t i = 1; i < race->count; i++) {
        struct hak_runner *runner = &race->runners[i];
        runner->is_out |= is_beaten(race, i, best) || (race->milder[i] & harmful) != 0;
        harmful |= harm_of(race, i);
        left += is_admitted(race, i) && !runner->is_out;
    }
    return left;
}

static void pay(struct hak_race *race, uint32_t runner, double score, uint32_t ticks)
{
    if (race->ticks == 0) {
        race->baseline = score; // whose turn the first one is
    } else if (runner == 0) {
        race->baseline += (score - race->baseline) / FOLLOWS;
    } else {
        race->purse -= loss_of(race, score) * ticks;
    }
    race->purse += HAK_RACE_BUDGET * ticks;
    race->ticks += ticks;
}

// A lap has ended.
static bool is_decided(struct hak_race *race)
{
    const uint32_t left = drop_losers(race);
    const bool is_lap_left =
        race->ticks + HAK_ROUND_TICKS * race->in_lap <= (uint32_t)HAK_RACE_TICKS_QUICK;
    return (left == 1 && race->ticks >= HAK_RACE_TICKS_LEAST) || (race->is_quick && !is_lap_left);
}

bool hak_race_note(struct hak_race *race, double score, uint32_t ticks)
{
    const uint32_t runner = hak_race_turn(race);
    pay(race, runner, score, ticks);
    race->turns[race->turn_count++] = (struct hak_turn){runner, score};
    race->runners[runner].is_out |= ticks < HAK_ROUND_TICKS;
    race->place += !race->is_rest;
    const bool is_late =
        race->ticks >= (uint32_t)(race->is_quick ? HAK_RACE_TICKS_QUICK : HAK_RACE_TICKS);
    if (is_late || race->place == race->in_lap) {
        lap_end(race);
        if (is_decided(race) || is_late) {
            return true;
        }
        lap_start(race);
    }
    turn_start(race);
    return false;
}

uint32_t hak_race_leader(const struct hak_race *race)
{
    const uint32_t best = hak_race_best(race);
    const bool wins = race->is_quick ? mean_of(&race->runners[best]) <
                                           (1 - HAK_RACE_AHEAD) * mean_of(&race->runners[0])
                                     : is_beaten(race, 0, best);
    return wins ? best : 0;
}

void hak_race_gain(const struct hak_race *race, uint32_t runner, double *gain, double *interval)
{
    const double baseline = mean_of(&race->runners[0]);
    *gain = (baseline - mean_of(&race->runners[runner])) / baseline;
    *interval = runner == 0 ? 0 : error_between(race, 0, runner) / baseline;
}
