// A race finds the variant with the least cost if the difference exceeds the noise; if the variants differ by noise
// only, the baseline wins. Laps halve the field, and a variant that is out does not play again.
#include "../unit.h"
#include "noise.h"
#include "policy/race.h"

enum { RACES = 400, VARIANTS = 14, ROUNDS_MOST = 46 };

struct game {
    double costs[HAK_RACE_MOST];
    double noise_part; // of the costs
    unsigned rounds[HAK_RACE_MOST];
    unsigned round_count;
};

static double play_round(struct game *game, struct hak_race *race)
{
    const uint32_t turn = hak_race_turn(race);
    // The program's own changes meanwhile: a swell that affects every variant.
    const double swell = 1 + 0.05 * (double)(game->round_count++ % 40) / 40;
    game->rounds[turn]++;
    return game->costs[turn] * swell * (1 + game->noise_part * noise());
}

// With time for this many rounds. Returns the winner.
static uint32_t play(struct game *game, struct hak_race *race)
{
    while (race->state != HAK_RACE_OVER && game->round_count < ROUNDS_MOST) {
        hak_race_note(race, play_round(game, race), false);
    }
    hak_race_end(race);
    return race->winner;
}

static void all_cost(struct game *game, double cost)
{
    for (unsigned i = 0; i < HAK_RACE_MOST; i++) {
        game->costs[i] = cost;
    }
}

static void the_best_wins(void)
{
    unsigned right = 0;
    for (unsigned i = 0; i < RACES; i++) {
        const uint32_t best = i % VARIANTS;
        struct game game = {.noise_part = 0.1};
        struct hak_race race;
        all_cost(&game, 1.25);
        game.costs[best] = 1;
        hak_race_start(&race, (1U << VARIANTS) - 1, i);
        right += play(&game, &race) == best;
        if (best != 0 && race.winner == best) {
            const struct hak_estimate saving = hak_sequence_estimate(&race.duel);
            UNIT_CHECK(saving.low > 0 && saving.mean > 0.05 && saving.mean < 0.17);
        }
    }
    UNIT_CHECK(right >= RACES * 97 / 100);
}

static void noise_alone_does_not_beat_the_baseline(void)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < RACES; i++) {
        struct game game = {.noise_part = 0.05 + 0.1 * (i % 5)};
        struct hak_race race;
        all_cost(&game, 1);
        hak_race_start(&race, (1U << VARIANTS) - 1, i);
        wrong += play(&game, &race) != 0;
    }
    UNIT_CHECK(wrong <= RACES / 33);
}

static void laps_halve_the_field(void)
{
    struct game game = {.costs = {1, 0.9, 0.8, 0.7, 0.6}};
    struct hak_race race;
    hak_race_start(&race, 0x1f, 1);
    UNIT_EQUAL(play(&game, &race), 4);
    UNIT_EQUAL(race.laps, 2);
    UNIT_CHECK(game.rounds[1] == 1 && game.rounds[2] == 1 && game.rounds[3] == 2);
    UNIT_EQUAL(game.rounds[0], 2 + HAK_SEQUENCE_LEAST);
    UNIT_EQUAL(game.rounds[4], 2 + HAK_SEQUENCE_LEAST);
}

static void equal_costs_are_no_reason_to_change(void)
{
    struct game game = {.noise_part = 0};
    struct hak_race race;
    for (unsigned cost = 0; cost < 2; cost++) {
        all_cost(&game, cost);
        hak_race_start(&race, 0x7, 7);
        UNIT_EQUAL(play(&game, &race), 0);
        UNIT_CHECK(race.candidate == 0 && race.laps == 1); // no duel without a reason
    }
}

static void who_is_out_does_not_play_again(void)
{
    struct game game = {.costs = {1, 0.9, 0.5}};
    struct hak_race race;
    hak_race_start(&race, 0x7, 1);
    while (race.laps == 0) {
        const bool is_out = hak_race_turn(&race) == 2;
        hak_race_note(&race, play_round(&game, &race), is_out);
    }
    UNIT_EQUAL(play(&game, &race), 1);
    UNIT_EQUAL(game.rounds[2], 1);
}

static void when_time_is_up_the_best_so_far_plays_the_duel(void)
{
    struct game game = {.costs = {1, 0.9, 0.6, 0.5}};
    struct hak_race race;
    hak_race_start(&race, 0xf, 1);
    hak_race_end_laps(&race);
    UNIT_CHECK(race.state == HAK_RACE_OVER && race.candidate == 0); // no variant has played
    hak_race_start(&race, 0xf, 1);
    while (race.laps == 0) {
        hak_race_note(&race, play_round(&game, &race), false);
    }
    hak_race_end_laps(&race);
    UNIT_CHECK(race.state == HAK_RACE_DUEL && race.candidate == 3);
    hak_race_note(&race, play_round(&game, &race), false);
    hak_race_end(&race);
    UNIT_CHECK(race.winner == 0 && race.duel.count == 0);
}

static void a_winner_can_be_doubted(void)
{
    struct game game = {.costs = {1, 0.8}};
    struct hak_race race;
    hak_race_start(&race, 0x3, 1);
    UNIT_EQUAL(play(&game, &race), 1);
    game = (struct game){.costs = {1, 1.1}};
    hak_race_doubt(&race, 1);
    UNIT_EQUAL(play(&game, &race), 0);
    UNIT_EQUAL(game.round_count, 2 * HAK_DUEL_PAIRS_HOPELESS);
    game = (struct game){.costs = {1, 0.9}};
    hak_race_doubt(&race, 1);
    UNIT_EQUAL(play(&game, &race), 1);
}

static void a_coin_says_who_begins_a_pair(void)
{
    unsigned swapped = 0;
    for (unsigned i = 0; i < 1000; i++) {
        struct hak_race race;
        hak_race_start(&race, 0x3, i);
        hak_race_doubt(&race, 1);
        const uint32_t first = hak_race_turn(&race);
        swapped += first;
        hak_race_note(&race, 1, false);
        UNIT_EQUAL(hak_race_turn(&race), 1 - first);
    }
    UNIT_CHECK(swapped > 420 && swapped < 580);
}

int main(void)
{
    the_best_wins();
    noise_alone_does_not_beat_the_baseline();
    laps_halve_the_field();
    equal_costs_are_no_reason_to_change();
    who_is_out_does_not_play_again();
    when_time_is_up_the_best_so_far_plays_the_duel();
    a_winner_can_be_doubted();
    a_coin_says_who_begins_a_pair();
    return 0;
}
