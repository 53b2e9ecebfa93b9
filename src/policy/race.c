// race.c -- see race.h.
#include "policy/race.h"

// Points that a rating can gain in a game, less the more have been played.
#define ELO_STEP_FIRST 40.0
#define ELO_STEP_LEAST 8.0
#define SURE           2.0 // standard errors
#define NOISE_LEAST    0.002
#define MOST           2.0 // that a score can be, in medians

static uint64_t draw(struct hak_race *race)
{
    race->random = race->random * 6364136223846793005U + 1442695040888963407U; // Knuth, MMIX
    return race->random >> 33;
}

static void lap_start(struct hak_race *race)
{
    race->place = 0;
    race->in_lap = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        if (!race->runners[i].is_out) {
            const uint32_t other = (uint32_t)(draw(race) % (race->in_lap + 1));
            race->order[race->in_lap++] = race->order[other];
            race->order[other] = (uint8_t)i;
        }
    }
}

void hak_race_start(struct hak_race *race, uint32_t count, uint64_t seed)
{
    *race = (struct hak_race){.count = count, .random = seed};
    for (uint32_t i = 0; i < count; i++) {
        race->runners[i].rating = 1500;
    }
    lap_start(race);
}

uint32_t hak_race_turn(const struct hak_race *race)
{
    return race->order[race->place];
}

static double mean_of(const struct hak_runner *runner)
{
    return runner->rounds > 0 ? runner->relative_sum / runner->rounds : 1;
}

// The variance of one round, of all runners together: each has too few for one of its own.
static double round_variance(const struct hak_race *race)
{
    double sum = 0;
    uint32_t freedom = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        const struct hak_runner *runner = &race->runners[i];
        if (runner->rounds > 1) {
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

static void play_game(
    struct hak_runner *a, struct hak_runner *b, double a_score, double b_score, double noise)
{
    const double lead = (b_score - a_score) / ((a_score + b_score) / 2); // less is better
    const double result = lead > noise ? 1 : lead < -noise ? 0 : 0.5;
    const double surprise = result - expected(a->rating - b->rating);
    a->rating += elo_step(a) * surprise;
    b->rating -= elo_step(b) * surprise;
    a->games++;
    b->games++;
}

uint32_t hak_race_best(const struct hak_race *race)
{
    uint32_t best = race->count;
    for (uint32_t i = 0; i < race->count; i++) {
        if (!race->runners[i].is_out &&
            (best == race->count || mean_of(&race->runners[i]) < mean_of(&race->runners[best]))) {
            best = i;
        }
    }
    return best;
}

static double error_between(const struct hak_race *race, uint32_t a, uint32_t b)
{
    const double rounds_a = race->runners[a].rounds > 0 ? race->runners[a].rounds : 1;
    const double rounds_b = race->runners[b].rounds > 0 ? race->runners[b].rounds : 1;
    return SURE * hak_square_root(round_variance(race) * (1 / rounds_a + 1 / rounds_b));
}

static double lap_median(const struct hak_race *race)
{
    double sorted[HAK_RACE_MOST];
    for (uint32_t i = 0; i < race->in_lap; i++) {
        uint32_t place = i;
        for (; place > 0 && sorted[place - 1] > race->scores[i]; place--) {
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = race->scores[i];
    }
    return (sorted[(race->in_lap - 1) / 2] + sorted[race->in_lap / 2]) / 2;
}

static void lap_end(struct hak_race *race)
{
    const double median = lap_median(race);
    for (uint32_t i = 0; i < race->in_lap; i++) {
        struct hak_runner *runner = &race->runners[race->order[i]];
        const double score = race->scores[i];
        const double relative = median <= 0 ? 1 : score < MOST * median ? score / median : MOST;
        runner->rounds++;
        runner->relative_sum += relative;
        runner->relative_sum2 += relative * relative;
    }
    const double noise = hak_square_root(2 * round_variance(race));
    for (uint32_t i = 0; i < race->in_lap; i++) {
        for (uint32_t j = i + 1; j < race->in_lap; j++) {
            play_game(&race->runners[race->order[i]],
                      &race->runners[race->order[j]],
                      race->scores[i],
                      race->scores[j],
                      noise);
        }
    }
    race->laps++;
}

static uint32_t drop_losers(struct hak_race *race)
{
    const uint32_t best = hak_race_best(race);
    uint32_t left = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        struct hak_runner *runner = &race->runners[i];
        if (race->laps >= HAK_RACE_LAPS_LEAST && !runner->is_out &&
            mean_of(runner) - mean_of(&race->runners[best]) > error_between(race, i, best)) {
            runner->is_out = true;
        }
        left += !runner->is_out;
    }
    return left;
}

bool hak_race_note(struct hak_race *race, double score)
{
    race->scores[race->place++] = score;
    if (race->place < race->in_lap) {
        return false;
    }
    lap_end(race);
    const bool is_over = drop_losers(race) == 1 || race->laps == HAK_RACE_LAPS;
    if (!is_over) {
        lap_start(race);
    }
    return is_over;
}

uint32_t hak_race_leader(const struct hak_race *race)
{
    return race->runners[0].is_out ? hak_race_best(race) : 0;
}

void hak_race_gain(const struct hak_race *race, uint32_t runner, double *gain, double *interval)
{
    const double baseline = mean_of(&race->runners[0]);
    *gain = (baseline - mean_of(&race->runners[runner])) / baseline;
    *interval = error_between(race, 0, runner) / baseline;
}
