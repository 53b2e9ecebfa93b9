// learner.h -- when to learn, what to keep, and when to doubt it.
//
// Layer     policy
// Threads   none: a pure state machine; tuner.c gives it the process's counters.
//
// learning   the strategies race (race.h).
// canary     the winner and the baseline take turns: what won by luck, or only while others disturbed it, is
//            found out. It is kept if it is still ahead, beyond chance: by the paired differences of six
//            rounds each, at one chance in a hundred (Student's t, 3.36 for five degrees of freedom), or of four
//            at one in two hundred (5.84 for three). It has failed if it is behind after four.
// frozen     the winner stays. After a while a canary looks whether it still wins.
//
// The distribution of sizes is watched: when it drifts to where it was before, what was decided then is back at
// once; to anywhere else, and what is frozen begins anew. It does, too, when a strategy matters (matters.h) that
// did not while it was learned.
#ifndef HAK_POLICY_LEARNER_H
#define HAK_POLICY_LEARNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "policy/drift.h"
#include "policy/race.h"

enum hak_learner_state { HAK_LEARNER_LEARNING, HAK_LEARNER_CANARY, HAK_LEARNER_FROZEN };

enum {
    HAK_FROZEN_ROUNDS = 1500, // until the next canary: 5 minutes
    HAK_DRIFT_ROUNDS = 2,     // between two looks at the sizes: 400 ms
    HAK_DRIFT_LOOKS = 2,      // in a row that must show a drift
};

// Rounds in pairs, one of each; which comes first alternates, so that a swell of the program cancels out.
enum { HAK_CANARY_PAIRS = 6, HAK_CANARY_PAIRS_FEW = 4 };
#define HAK_CANARY_SURE     3.36
#define HAK_CANARY_SURE_FEW 5.84
struct hak_canary {
    uint32_t rounds;
    double first;       // score of the present pair's first
    double gain_sum;    // of the winner, by pair, as a part of the pair's mean
    double gain_square; // of its squares
};

// What was decided for one distribution of sizes.
struct hak_lesson {
    struct hak_sizes sizes; // while it was learned
    uint32_t matter;        // a mask of the strategies that mattered then
    uint32_t winner;
    uint32_t rival;  // that was the best beside the baseline: of whom `gain` is
    uint32_t laps;   // of the race
    double gain;     // over the baseline, as a part of the score
    double interval; // of that
};
enum { HAK_LESSONS = 4 }; // kept, the latest: phases that a program goes through again and again

// At what the program does.
struct hak_look {
    uint32_t rounds;
    struct hak_sizes sizes;
    uint32_t matter; // a mask of the strategies that mattered in it
};

struct hak_learner {
    uint32_t state;       // enum hak_learner_state
    uint32_t strategy;    // in force
    uint32_t rounds;      // in this state
    uint32_t drift_looks; // in a row that have shown a drift
    uint32_t quiet_looks; // in a row in which nothing mattered
    uint32_t races;       // begun
    uint32_t decided;     // times that something was, or was recalled
    uint32_t recalled;    // of them, when the sizes had drifted to where they were before
    double drift;         // at the last look
    double saved;         // for the next race's purse
    struct hak_race race;
    struct hak_canary canary;
    struct hak_lesson now;  // for the present sizes: in force while frozen, else in the making
    struct hak_look recent; // the one that is being taken
    uint32_t lesson_count;  // that there have been
    struct hak_lesson lessons[HAK_LESSONS];
};

// `milder`: see hak_race_start.
HAK_INTERNAL void hak_learner_start(struct hak_learner *learner,
                                    uint32_t strategies,
                                    const uint16_t *milder);
// The round has this score after so many ticks. True when it is over.
HAK_INTERNAL bool hak_learner_is_enough(const struct hak_learner *learner,
                                        double score,
                                        uint32_t ticks);
// It is over, after so many ticks with this score; blocks of these sizes were asked for in it, and these
// strategies (a mask) could have made a difference. Sets the strategy for the next.
HAK_INTERNAL void hak_learner_note(struct hak_learner *learner,
                                   double score,
                                   uint32_t ticks,
                                   const struct hak_sizes *sizes,
                                   uint32_t matter);

#endif
