// race.h -- which of some variants costs least, from costs with noise.
//
// Threads   none: a pure state machine of its caller's. The command line compiles it, too (cli/lab).
//
// First, laps find a candidate. In each lap every variant that is left plays one round, in a new random order. After
// the lap the better half stays, by the mean of what each has saved against the baseline. (Halving: Karnin, Koren and
// Somekh, "Almost optimal exploration in multi-armed bandits", 2013.) This is no test: the best of a dozen may just be
// the luckiest. So candidate and baseline then play a duel, in pairs of rounds whose order a coin decides. Only
// these count, and the candidate wins when the confidence sequence of what it saves (sequence.h) lies above zero.
#pragma once

#include "base/compiler.h"
#include "policy/sequence.h"

enum {
    HAK_RACE_MOST = 32,          // variants
    HAK_DUEL_PAIRS_HOPELESS = 4, // after which a candidate that is behind has lost
};
#define HAK_RACE_AHEAD 0.005 // of both costs, 1 % of one: a smaller difference counts as none

enum hak_race_state { HAK_RACE_LAPS, HAK_RACE_DUEL, HAK_RACE_OVER };

struct hak_race {
    uint64_t random;
    uint32_t state; // enum hak_race_state
    uint32_t left;  // a mask of those that may still be the candidate
    uint32_t laps;  // that are over
    uint32_t place; // in the order of the present lap, or of the present pair
    uint32_t in_lap;
    uint32_t candidate;  // in the duel, and afterwards; 0: none
    uint32_t winner;     // when the race is over; 0: the baseline
    uint32_t is_swapped; // in the present pair: the candidate is first
    uint8_t order[HAK_RACE_MOST];
    double
        costs[HAK_RACE_MOST]; // in the present lap; in a pair the baseline's, then the candidate's
    struct hak_sequence savings[HAK_RACE_MOST]; // by variant, of its laps
    struct hak_sequence duel;
};

// `variants`: a mask of those that play beside the baseline.
HAK_INTERNAL void hak_race_start(struct hak_race *race, uint32_t variants, uint64_t seed);
// Begin with a duel of `candidate`, which won before.
HAK_INTERNAL void hak_race_doubt(struct hak_race *race, uint32_t candidate);
// The variant that plays the next round.
HAK_INTERNAL uint32_t hak_race_turn(const struct hak_race *race);
// Note the cost of that variant's round. `is_out`: it plays in no further lap.
HAK_INTERNAL void hak_race_note(struct hak_race *race, double cost, bool is_out);
// End the laps: the duel begins, or the race is over if no variant is ahead.
HAK_INTERNAL void hak_race_end_laps(struct hak_race *race);
// End the race: there is no time left.
HAK_INTERNAL void hak_race_end(struct hak_race *race);
