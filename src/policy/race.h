// race.h -- which of some strategies is best, from scores with noise.
//
// Layer     policy
// Threads   none: a pure state machine of its caller's.
//
// Played in laps: each strategy that is still in the race plays one round of a lap, in an order drawn anew,
// so that what the program does meanwhile favours none. A score counts in relation to the lap's median, and no
// more than twice that: one round that was disturbed must not hide what the others show. Each
// two of a lap are also a game for their Elo ratings, drawn when the scores are nearer to each other than
// the noise seen so far. (Elo, The Rating of Chessplayers, 1978.)
//
// A strategy is out when the best is better by more than chance: by twice the standard error of their
// difference, after two laps at least. (Maron and Moore, "Hoeffding races", 1994, with a normal bound.)
// The race is over when one is left, or after the last lap; then the baseline wins unless it is out.
#ifndef HAK_POLICY_RACE_H
#define HAK_POLICY_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { HAK_RACE_MOST = 16, HAK_RACE_LAPS = 4, HAK_RACE_LAPS_LEAST = 2 };

struct hak_runner {
    bool is_out;
    uint32_t rounds;
    uint32_t games;
    double rating;        // Elo; 1500 at the start
    double relative_sum;  // of score / the lap's median
    double relative_sum2; // of its squares
};

struct hak_race {
    uint32_t count; // the baseline is number 0
    uint32_t laps;  // that are over
    uint32_t place; // in the present lap
    uint32_t in_lap;
    uint64_t random;
    uint8_t order[HAK_RACE_MOST];
    double scores[HAK_RACE_MOST]; // of the present lap, by place
    struct hak_runner runners[HAK_RACE_MOST];
};

// Of a number that is not negative. The sweeper's thread has no mathematical library.
HAK_INTERNAL double hak_square_root(double value);

HAK_INTERNAL void hak_race_start(struct hak_race *race, uint32_t count, uint64_t seed);
// Who plays the next round.
HAK_INTERNAL uint32_t hak_race_turn(const struct hak_race *race);
// It scored that. True when the race is over with it.
HAK_INTERNAL bool hak_race_note(struct hak_race *race, double score);
// Who has the best mean of those that are still in it.
HAK_INTERNAL uint32_t hak_race_best(const struct hak_race *race);
// Who is ahead; over, the winner.
HAK_INTERNAL uint32_t hak_race_leader(const struct hak_race *race);
// How much better than the baseline it is, as a part of the score, and how sure: twice the standard error.
HAK_INTERNAL void hak_race_gain(const struct hak_race *race,
                                uint32_t runner,
                                double *gain,
                                double *interval);

#endif
