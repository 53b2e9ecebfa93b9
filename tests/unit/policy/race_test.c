// The race finds the best of strategies whose scores differ by more than noise, within its time; where nothing
// but noise differs, it keeps the baseline. Trying the others costs no more than a hundredth of the time.
#include "../unit.h"
#include "policy/race.h"

enum { RACES = 400, RUNNERS = 14 };

static uint64_t state = 1;

// Evenly from -1 to 1.
static double noise(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (double)(int64_t)(state >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static const uint16_t no_steps[HAK_RACE_MOST];

// What is played in a race. Scores are a fifth of a cost: the allocator takes a sixth of the time.
struct game {
    double costs[HAK_RACE_MOST];
    double noise_part; // of the costs; in a tick
    unsigned ticks[HAK_RACE_MOST];
    double lost_ticks; // of the program's time, beyond what the baseline would have cost
};

// A round of two ticks, or of one that was too dear.
static bool play_round(struct hak_race *race, struct game *game, double swell)
{
    const uint32_t turn = hak_race_turn(race);
    double score = 0;
    uint32_t ticks = 0;
    do {
        const double tick = 0.2 * game->costs[turn] * swell * (1 + game->noise_part * noise());
        score = (score * ticks + tick) / (ticks + 1);
        ticks++;
    } while (ticks < HAK_ROUND_TICKS && !hak_race_is_too_dear(race, score, ticks));
    const double cost = 0.2 * game->costs[turn] * swell;
    const double least = 0.2 * game->costs[0] * swell;
    game->lost_ticks += (cost / (1 + cost) - least / (1 + least)) * ticks;
    game->ticks[turn] += ticks;
    return hak_race_note(race, score, ticks);
}

// Play until it is over; returns the ticks that it took.
static unsigned play(struct hak_race *race, struct game *game)
{
    bool is_over = false;
    while (!is_over) {
        // What the program does meanwhile: a swell that everyone gets a part of.
        is_over = play_round(race, game, 1 + 0.05 * (double)(race->ticks % 80) / 80);
    }
    const unsigned ticks_most = race->is_quick ? HAK_RACE_TICKS_QUICK : HAK_RACE_TICKS;
    UNIT_CHECK(race->ticks <= ticks_most + HAK_ROUND_TICKS - 1);
    return race->ticks;
}

static void all_cost(struct game *game, double cost)
{
    for (unsigned i = 0; i < HAK_RACE_MOST; i++) {
        game->costs[i] = cost;
    }
}

static struct game game_of_one_best(unsigned best, double noise_part)
{
    struct game game = {.noise_part = noise_part};
    all_cost(&game, 1.25);
    game.costs[best] = 1;
    return game;
}

static void the_best_wins(void)
{
    unsigned right = 0;
    for (unsigned i = 0; i < RACES; i++) {
        const unsigned best = i % RUNNERS;
        struct game game = game_of_one_best(best, 0.07);
        struct hak_race race;
        hak_race_start(&race, RUNNERS, no_steps, i);
        hak_race_admit(&race, ~0U);
        play(&race, &game);
        right += hak_race_leader(&race) == best;
        if (best != 0 && hak_race_leader(&race) == best) {
            double gain;
            double interval;
            hak_race_gain(&race, best, &gain, &interval);
            UNIT_CHECK(gain > interval && gain > 0.05 && gain < 0.35);
        }
    }
    UNIT_CHECK(right >= RACES * 97 / 100);
}

static void trying_costs_a_hundredth(void)
{
    double lost = 0;
    double ticks = 0;
    for (unsigned i = 0; i < RACES; i++) {
        struct game game = {.noise_part = 0.1};
        for (unsigned j = 0; j < RUNNERS; j++) {
            game.costs[j] = 1 + (j * j + i) % 17 / 8.0; // some are three times as dear
        }
        game.costs[0] = 1;
        struct hak_race race;
        hak_race_start(&race, RUNNERS, no_steps, i);
        hak_race_admit(&race, ~0U);
        ticks += play(&race, &game);
        lost += game.lost_ticks;
        // Beyond the budget no more than a round that was too dear in its second half.
        UNIT_CHECK(game.lost_ticks <= HAK_RACE_BUDGET * (double)HAK_RACE_TICKS + 0.5);
        UNIT_EQUAL(hak_race_leader(&race), 0);
    }
    UNIT_CHECK(lost <= ticks * HAK_RACE_BUDGET);
}

static void what_is_far_too_dear_gets_one_tick(void)
{
    struct game game = {.noise_part = 0.1};
    all_cost(&game, 1);
    game.costs[5] = 10;
    struct hak_race race;
    hak_race_start(&race, RUNNERS, no_steps, 1);
    hak_race_admit(&race, ~0U);
    play(&race, &game);
    UNIT_EQUAL(game.ticks[5], 1);
    UNIT_CHECK(race.runners[5].is_out);
    UNIT_EQUAL(hak_race_leader(&race), 0);
}

// 1, then 2, then 3; and 4 after both 1 and 5.
static void what_goes_further_waits_for_the_milder(void)
{
    static const uint16_t steps[HAK_RACE_MOST] = {0, 0, 1 << 1, 1 << 2, 1 << 1};
    unsigned found = 0;
    for (unsigned i = 0; i < RACES; i++) {
        struct game game = {{1, 1.4, 1.4, 1.4, 1, 1}, .noise_part = 0.05};
        struct hak_race race;
        hak_race_start(&race, 6, steps, i);
        hak_race_admit(&race, ~0U);
        play(&race, &game);
        UNIT_CHECK(game.ticks[1] > 0 && game.ticks[5] > 0);
        UNIT_EQUAL(game.ticks[2] + game.ticks[3] + game.ticks[4], 0);
        UNIT_CHECK(race.runners[2].is_out && race.runners[3].is_out && race.runners[4].is_out);
        game = (struct game){{1, 0.95, 0.9, 0.7, 1, 1}, .noise_part = 0.05};
        hak_race_start(&race, 6, steps, i);
        hak_race_admit(&race, ~0U);
        play(&race, &game);
        found += hak_race_leader(&race) == 3;
    }
    UNIT_CHECK(found >= RACES * 97 / 100);
}

static void noise_alone_seldom_beats_the_baseline(void)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < RACES; i++) {
        struct game game = {.noise_part = 0.4};
        all_cost(&game, 1);
        struct hak_race race;
        hak_race_start(&race, RUNNERS, no_steps, i);
        hak_race_admit(&race, ~0U);
        play(&race, &game);
        wrong += hak_race_leader(&race) != 0;
    }
    // Of fourteen the luckiest is compared with the baseline: the canary looks again (learner.h).
    UNIT_CHECK(wrong < RACES * 40 / 100);
}

static void ratings_follow_the_scores(void)
{
    double sums[4] = {0};
    for (unsigned i = 0; i < RACES; i++) {
        struct game game = {{1.2, 1, 1.4, 1.6}, .noise_part = 0.03};
        struct hak_race race;
        hak_race_start(&race, 4, no_steps, i);
        hak_race_admit(&race, ~0U);
        play(&race, &game);
        double all = 0;
        for (unsigned j = 0; j < 4; j++) {
            sums[j] += race.runners[j].rating;
            all += race.runners[j].rating;
            UNIT_CHECK(race.runners[j].games > 0);
        }
        UNIT_CHECK(all > 4 * 1500 - 100 && all < 4 * 1500 + 100); // who plays more moves less
    }
    UNIT_CHECK(sums[1] > sums[0] && sums[0] > sums[2] && sums[2] > sums[3]);
}

static void equal_scores_are_no_reason_to_change(void)
{
    struct game game = {{1, 1, 1}, .noise_part = 0};
    struct hak_race race;
    hak_race_start(&race, 3, no_steps, 7);
    hak_race_admit(&race, ~0U);
    UNIT_EQUAL(play(&race, &game), HAK_RACE_TICKS);
    UNIT_EQUAL(hak_race_leader(&race), 0);
    UNIT_CHECK(game.ticks[1] > HAK_RACE_TICKS / 4 && game.ticks[2] > HAK_RACE_TICKS / 4);
    hak_race_start(&race, 3, no_steps, 7);
    hak_race_admit(&race, ~0U);
    all_cost(&game, 0);
    play(&race, &game);
    UNIT_EQUAL(hak_race_leader(&race), 0);
}

// In a later phase a lap or two must do: who is far ahead wins, for the canary to judge.
static void a_quick_race_finds_who_is_far_ahead(void)
{
    enum { FEW = 6 };
    unsigned right = 0;
    for (unsigned i = 0; i < RACES; i++) {
        const unsigned best = i % FEW;
        struct game game = game_of_one_best(best, 0.05);
        struct hak_race race;
        hak_race_start(&race, FEW, no_steps, i);
        hak_race_hurry(&race, ~0U, 1);
        play(&race, &game);
        right += hak_race_leader(&race) == best;
    }
    UNIT_CHECK(right >= RACES * 97 / 100);
}

static void what_does_not_matter_is_not_tried(void)
{
    struct game game = {{1, 0.5, 0.8, 0.7}, .noise_part = 0.05};
    struct hak_race race;
    hak_race_start(&race, 4, no_steps, 1);
    UNIT_EQUAL(play(&race, &game), HAK_RACE_TICKS_LEAST);
    UNIT_EQUAL(hak_race_leader(&race), 0);
    hak_race_start(&race, 4, no_steps, 1);
    play_round(&race, &game, 1);
    hak_race_admit(&race, 1U << 2 | 1U << 3);
    game.ticks[0] = 0;
    play(&race, &game);
    UNIT_EQUAL(game.ticks[1], 0);
    UNIT_CHECK(game.ticks[2] > 0 && game.ticks[3] > 0);
    UNIT_EQUAL(hak_race_leader(&race), 3);
}

int main(void)
{
    the_best_wins();
    trying_costs_a_hundredth();
    what_is_far_too_dear_gets_one_tick();
    what_goes_further_waits_for_the_milder();
    noise_alone_seldom_beats_the_baseline();
    ratings_follow_the_scores();
    equal_scores_are_no_reason_to_change();
    a_quick_race_finds_who_is_far_ahead();
    what_does_not_matter_is_not_tried();
    return 0;
}
