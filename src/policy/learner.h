// learner.h -- when to learn, what to keep, and when to doubt it.
//
// Layer     policy
// Threads   none: a pure state machine; tuner.c gives it the process's counters.
//
// frozen   what was decided is in force; before anything was, the baseline. After five minutes a winner must win again.
// racing   the strategies that are relevant to what the program does (relevance.h) race (race.h), within a budget
//          (budget.h) and a time.
//
// What the program does is seen in windows of 400 ms. When the distribution of sizes drifts, or a strategy becomes
// relevant that was not, the program is in another phase: what was decided for it before is back at once, or a race
// begins. A later phase gets less time for it than the start of the program.
#pragma once

#include "base/compiler.h"
#include "policy/budget.h"
#include "policy/drift.h"
#include "policy/race.h"

enum hak_learner_state { HAK_LEARNER_FROZEN, HAK_LEARNER_RACING };

enum {
    HAK_ROUND_TICKS = 2,       // of the sweeper, of 100 ms
    HAK_WINDOW_ROUNDS = 2,     // at least: until enough blocks were asked for to tell their sizes
    HAK_PHASE_WINDOWS = 2,     // in a row that make another phase
    HAK_LAPS_TICKS = 52,       // of a race
    HAK_RACE_TICKS = 88,       // with its duel; with the windows before it less than ten seconds
    HAK_LAPS_TICKS_QUICK = 16, // of a race in a later phase
    HAK_RACE_TICKS_QUICK = 40, // less than five seconds
    HAK_FIRST_ROUNDS = 10,     // a race that begins later is one in a later phase
    HAK_FROZEN_ROUNDS = 1500,  // 5 minutes
};

// Of the program.
struct hak_phase {
    struct hak_sizes sizes;
    uint32_t relevant; // a mask of strategies
    uint32_t winner;
    uint32_t candidate;       // that played the duel; 0: none was ahead
    struct hak_sequence duel; // what it saved
};
enum { HAK_PHASES = 4 }; // kept, the latest

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
    uint32_t decided;         // times that something was, or was recalled
    uint32_t recalled;
    uint32_t ticks; // of the race
    bool is_quick;
    bool is_rest; // the baseline plays beside the race, until the budget has recovered
    struct hak_budget budget;
    struct hak_race race;
    struct hak_phase now; // while racing in the making
    struct hak_window window;
    uint32_t phase_count; // that something was decided for
    struct hak_phase phases[HAK_PHASES];
};

// The round has this score (score.h) after so many ticks. True when it is over.
HAK_INTERNAL bool hak_learner_is_enough(const struct hak_learner *learner,
                                        double score,
                                        uint32_t ticks);
// It is over, after so many ticks with this score; blocks of these sizes were asked for in it, and these
// strategies (a mask) were relevant. Sets the strategy for the next.
HAK_INTERNAL void hak_learner_note(struct hak_learner *learner,
                                   double score,
                                   uint32_t ticks,
                                   const struct hak_sizes *sizes,
                                   uint32_t relevant);
