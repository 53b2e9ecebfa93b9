// learner.h -- when to learn, what to keep, and when to doubt it.
//
// Threads   none: a pure state machine; tuner.c gives it the process's counters.
//
// frozen   the latest decision is in force; before the first one, the baseline. After five minutes a winner must win again.
// racing   the strategies that are relevant to what the program does (relevance.h) race (race.h), within a budget
//          (budget.h) and a time limit.
//
// The learner watches the program in windows of at least 400 ms. When the distribution of sizes drifts, or another
// strategy becomes relevant, the program is in another phase. If the learner has a decision for such a phase, it
// restores that at once; else a race begins. A race in a later phase gets less time than one at the start.
#pragma once

#include "base/compiler.h"
#include "policy/budget.h"
#include "policy/drift.h"
#include "policy/race.h"

enum hak_learner_state { HAK_LEARNER_FROZEN, HAK_LEARNER_RACING };

enum {
    HAK_ROUND_TICKS = 2,       // of the sweeper, of 100 ms
    HAK_WINDOW_ROUNDS = 2,     // at least, and until there are enough blocks for a judgement
    HAK_PHASE_WINDOWS = 2,     // so many changed ones in a row make another phase
    HAK_LAPS_TICKS = 52,       // for the laps of a race
    HAK_RACE_TICKS = 88,       // with its duel; with the windows before it less than ten seconds
    HAK_LAPS_TICKS_QUICK = 16, // for the laps of a race in a later phase
    HAK_RACE_TICKS_QUICK = 40, // less than five seconds
    HAK_FIRST_ROUNDS = 10,     // a race that begins later counts as one in a later phase
    HAK_FROZEN_ROUNDS = 1500,  // 5 minutes
};

// A phase of the program, and the decision for it.
struct hak_phase {
    struct hak_sizes sizes;
    uint32_t relevant; // a mask of strategies
    uint32_t winner;
    uint32_t candidate;       // who played the duel; 0: none was ahead
    struct hak_sequence duel; // what the candidate saved
};
enum { HAK_PHASES = 4 }; // so many are kept, the latest

struct hak_window {
    uint32_t rounds;
    uint32_t relevant; // a mask of strategies
    struct hak_sizes sizes;
};

// A new one is all zeros.
struct hak_learner {
    uint32_t state;           // enum hak_learner_state
    uint32_t strategy;        // in force
    uint32_t rounds;          // in this state
    uint32_t changed_windows; // in a row that showed another phase
    uint32_t quiet_windows;   // in a row in which nothing was relevant
    uint32_t races;           // begun
    uint32_t decided;         // how often something was decided or recalled
    uint32_t recalled;
    uint32_t ticks; // of the race
    bool is_quick;
    bool is_rest; // the baseline plays outside the race until the budget has recovered
    struct hak_budget budget;
    struct hak_race race;
    struct hak_phase now; // incomplete while racing
    struct hak_window window;
    uint32_t phase_count; // how many had a decision so far
    struct hak_phase phases[HAK_PHASES];
};

// Is a round over that has this score (score.h) after so many ticks?
HAK_INTERNAL bool hak_learner_is_enough(const struct hak_learner *learner,
                                        double score,
                                        uint32_t ticks);
// Note a round that is over: its score, its ticks, the sizes that were requested in it, and the strategies (a
// mask) that were relevant. Sets the strategy for the next round.
HAK_INTERNAL void hak_learner_note(struct hak_learner *learner,
                                   double score,
                                   uint32_t ticks,
                                   const struct hak_sizes *sizes,
                                   uint32_t relevant);
