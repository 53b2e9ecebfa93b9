// trial.h -- which of two values of an option is better, from what each costs at the same time.
//
// Threads   none: a pure state machine; experiment.c gives it the process's counters.
//
// The caches or superslabs that use the option are in two groups, and each group has one of the values. After a while
// (a half) the groups swap values, and after both halves (a pair) the costs of the values are compared:
// (a - b) / (a + b), from -1 to 1. For each pair a fair coin decides which group begins with which value. If the value
// makes no difference, the other side of the coin would give the opposite figure. So the mean is zero, however
// the groups differ and whatever the program does. The test relies on nothing else (sequence.h).
#pragma once

#include "base/compiler.h"
#include "base/variants.h"
#include "policy/score.h"
#include "policy/sequence.h"

enum hak_verdict { HAK_VERDICT_NONE, HAK_VERDICT_FIRST, HAK_VERDICT_SECOND, HAK_VERDICT_SAME };

enum {
    HAK_TRIAL_PAIRS_LEAST = 8
}; // either value may win, so it takes two pairs more than a race's duel
// A smaller difference counts as none: 5 % of the sum, about a tenth of the cost.
#define HAK_TRIAL_SAME 0.05

struct hak_trial {
    uint32_t verdict; // enum hak_verdict
    uint32_t swap;    // in the present half; 1: group 0 has the second value
    uint32_t half;    // of the present pair
    uint64_t random;
    uint64_t idle_pairs;                 // that do not count
    struct hak_round pair[HAK_VARIANTS]; // by variant: in the present pair so far
    struct hak_round
        total[HAK_VARIANTS]; // by variant: in the pairs that count; resident_bytes, too, is a sum
    struct hak_sequence sequence; // what the second saves
};

HAK_INTERNAL void hak_trial_start(struct hak_trial *trial, uint64_t seed);
// Note the costs of both groups in a half that is over, and choose their values for the next. True when there
// is a verdict.
HAK_INTERNAL bool hak_trial_note(struct hak_trial *trial,
                                 const struct hak_round groups[HAK_VARIANTS]);
