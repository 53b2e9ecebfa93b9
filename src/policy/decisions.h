// decisions.h -- the log of the decisions in this process and their evidence, for tools (`hakmem explain`).
//
// Owns      hak_decisions.
// Threads   the sweeper's writes; tools read it from outside.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/variants.h"
#include "policy/score.h"

enum { HAK_DECISIONS_KEPT = 16 };

enum hak_decision_kind { HAK_DECISION_TRIAL, HAK_DECISION_LEARNER };

struct hak_decision {
    _Atomic(uint64_t) number; // counted from 1; 0: none, or it is being written
    uint64_t date_ns;         // since 1970
    uint32_t kind;            // enum hak_decision_kind
    uint32_t verdict;         // enum hak_verdict: between the first and the second of `values`
    uint32_t option;          // the option on trial; 0 for the learner
    uint64_t values
        [HAK_VARIANTS]; // of the option; or the strategies, of which the first is the baseline
    uint64_t games;     // pairs that were compared
    int64_t
        difference_ppm; // of the costs, as a part of their sum: below 0 when the first is cheaper
    int64_t low_ppm;    // the ends of its interval
    int64_t high_ppm;   //
    struct hak_round costs[HAK_VARIANTS]; // the total cost of each; zeros for the learner
};

struct hak_decisions {
    _Atomic(uint64_t) count;                        // since the start
    struct hak_decision running;                    // a trial that is not decided yet
    struct hak_decision latest[HAK_DECISIONS_KEPT]; // the n-th at n modulo their number
};
HAK_INTERNAL extern struct hak_decisions hak_decisions;

// Add a decision to the log, with its number and date.
HAK_INTERNAL void hak_decisions_add(const struct hak_decision *decision);
// Show how the running trial stands.
HAK_INTERNAL void hak_decisions_set_running(const struct hak_decision *decision);
HAK_INTERNAL void hak_decisions_end_running(void);
