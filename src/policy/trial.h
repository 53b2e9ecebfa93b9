// trial.h -- which of two values of an option is better, from what each costs at the same time.
//
// Layer     policy
// Threads   none: a pure state machine; experiment.c gives it the process's counters.
//
// Users of the option are in two groups, each of which has one of the values. After a while (a half) they change
// places, and after both halves (a pair) the costs of the values are compared: (a - b) / (a + b), from -1 to 1. Who
// begins with which is drawn for each pair by a fair coin. If the value made no difference, the
// same pair drawn the other way would have had the opposite figure: so its mean is zero, however the groups
// differ and whatever the program does. That is all that the test relies on (sequence.h).
#pragma once

#include "base/compiler.h"
#include "base/variants.h"
#include "policy/score.h"
#include "policy/sequence.h"

enum hak_verdict { HAK_VERDICT_NONE, HAK_VERDICT_FIRST, HAK_VERDICT_SECOND, HAK_VERDICT_SAME };

enum {
    HAK_TRIAL_PAIRS_LEAST = 8
}; // either value may win, so it takes two pairs more than a race's duel
// A difference of less than so much is none: 5 % of the sum, about a tenth of the cost.
#define HAK_TRIAL_SAME 0.05

struct hak_trial {
    uint32_t verdict; // enum hak_verdict
    uint32_t swap;    // in the present half: 1, group 0 has the second value
    uint32_t half;    // of the present pair
    uint64_t random;
    uint64_t idle_pairs;                 // that said nothing
    struct hak_round pair[HAK_VARIANTS]; // by variant: in the present pair so far
    struct hak_round
        total[HAK_VARIANTS]; // by variant: in the pairs that count; resident_bytes, too, is a sum
    struct hak_sequence sequence; // what the second saves
};

HAK_INTERNAL void hak_trial_start(struct hak_trial *trial, uint64_t seed);
// A half is over in which each group has cost that. Draws who has what in the next; true when there is a
// verdict.
HAK_INTERNAL bool hak_trial_note(struct hak_trial *trial,
                                 const struct hak_round groups[HAK_VARIANTS]);
