// race.h -- which of some strategies is best, from scores with noise.
//
// Layer     policy
// Threads   none: a pure state machine of its caller's.
//
// Played in laps: each strategy that is in the race plays one round of a lap, in an order drawn anew,
// so that what the program does meanwhile favours none. A score counts in relation to the lap's median, and no
// more than twice that: one round that was disturbed must not hide what the others show. Each
// two of a lap are also a game for their Elo ratings, drawn when the scores are nearer to each other than
// the noise seen so far. (Elo, The Rating of Chessplayers, 1978.)
//
// Trying costs what the others are worse than the baseline, and may cost a hundredth of the program's time:
// - Each tick of the race adds that to the purse, and each round of another takes out what it cost more than the
//   baseline does. While there is less than the stake in it, the baseline plays, also before the first lap.
// - A round that has cost more than the purse holds is cut short, and who played it is out. The baseline
//   stands instead, so nothing is risked by it.
// - A strategy that goes further than another plays only when that one has played and is not worse than the
//   baseline by a standard error; when that one is out, and no better than the baseline, it is, too.
//
// A strategy is out, too, when the best is better by more than chance: by twice the standard error of their
// difference, after two rounds at least. (Maron and Moore, "Hoeffding races", 1994, with a normal bound.)
// The race is over when one is left, or its time is; then the baseline wins unless it is beaten like that.
// A quick race has as many laps as its time is enough for, one at least, and its winner is who was ahead, for the
// canary (learner.h) to judge.
//
// Who makes no difference to what the program does (matters.h) does not play, until it does.
#ifndef HAK_POLICY_RACE_H
#define HAK_POLICY_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
    HAK_RACE_MOST = 16,
    HAK_RACE_ROUNDS_LEAST = 2,
    HAK_ROUND_TICKS = 2,       // of the sweeper, of 100 ms
    HAK_RACE_TICKS = 64,       // with the canary's 24 (learner.h) less than ten seconds
    HAK_RACE_TICKS_LEAST = 10, // so long it waits for a strategy that matters
    HAK_RACE_TICKS_QUICK = 16, // with the looks before it and the canary less than five seconds
};
#define HAK_RACE_BUDGET 0.01 // of the program's processor time
#define HAK_RACE_STAKE  0.06 // ticks of it: more than chance makes of most programs' rounds
#define HAK_RACE_SAVED  (3 * HAK_RACE_STAKE) // that a quick race may begin with
#define HAK_RACE_AHEAD  0.02                 // of the baseline's score: less is not worth a canary

struct hak_runner {
    bool is_out;
    uint32_t rounds;
    uint32_t games;
    double rating;        // Elo; 1500 at the start
    double relative_sum;  // of score / the lap's median
    double relative_sum2; // of its squares
};

struct hak_turn {
    uint32_t runner;
    double score;
};

struct hak_race {
    uint32_t count;         // the baseline is number 0
    const uint16_t *milder; // of each runner a mask of those that it goes further than
    uint32_t matter;        // a mask of those that make a difference
    bool is_quick;
    uint32_t laps;   // that are over
    uint32_t ticks;  // likewise
    uint32_t place;  // in the order of the present lap
    uint32_t in_lap; // places of it
    bool is_rest;    // the baseline plays beside the order, until the purse has filled
    double purse;    // ticks of the program's time that trying may cost now
    double baseline; // its recent score
    uint64_t random;
    uint32_t turn_count; // in the present lap
    uint8_t order[HAK_RACE_MOST];
    struct hak_turn turns[HAK_RACE_TICKS]; // of the present lap
    struct hak_runner runners[HAK_RACE_MOST];
};

// Of a number that is not negative. The sweeper's thread has no mathematical library.
HAK_INTERNAL double hak_square_root(double value);

// `milder` stays the caller's, and stays.
HAK_INTERNAL void hak_race_start(struct hak_race *race,
                                 uint32_t count,
                                 const uint16_t *milder,
                                 uint64_t seed);
// It has just been started, for a later phase of the program: be quick, with these runners (a mask) and a purse
// that was saved meanwhile.
HAK_INTERNAL void hak_race_hurry(struct hak_race *race, uint32_t runners, double saved);
// From the next lap on these play, too. Nobody does before, but the baseline.
HAK_INTERNAL void hak_race_admit(struct hak_race *race, uint32_t runners);
// Who plays the next round.
HAK_INTERNAL uint32_t hak_race_turn(const struct hak_race *race);
// After so many ticks of its round it has this score: is that enough?
HAK_INTERNAL bool hak_race_is_too_dear(const struct hak_race *race, double score, uint32_t ticks);
// Its round is over, maybe cut short, and scored that. True when the race is over with it.
HAK_INTERNAL bool hak_race_note(struct hak_race *race, double score, uint32_t ticks);
// Who has the best mean of those that are still in it.
HAK_INTERNAL uint32_t hak_race_best(const struct hak_race *race);
// Who is ahead; over, the winner.
HAK_INTERNAL uint32_t hak_race_leader(const struct hak_race *race);
// How much better than the baseline it is, as a part of the score, and how sure: twice the standard error; of the
// baseline itself 0 and 0.
HAK_INTERNAL void hak_race_gain(const struct hak_race *race,
                                uint32_t runner,
                                double *gain,
                                double *interval);

#endif
