// budget.h -- what trying may cost.
//
// Layer     policy
// Threads   none: the state is its caller's.
//
// Trying costs what the others are worse than the baseline, and may cost a hundredth of the program's processor
// time. Each tick of a race adds that to the budget, and each round of another takes out what it cost more than the
// baseline does. While less than the stake is in it, the baseline plays. A round that has cost more than is in it is cut
// short, and who played it is out.
#pragma once

#include "base/compiler.h"

#define HAK_BUDGET_PART  0.01 // of the program's processor time
#define HAK_BUDGET_STAKE 0.06 // ticks of it: more than chance makes of most programs' rounds
#define HAK_BUDGET_SAVED (3 * HAK_BUDGET_STAKE) // that may be left from before

struct hak_budget {
    double ticks;    // of the program's time that trying may cost now
    double baseline; // its recent score (score.h); 0: not known yet
};

// What the score is above the baseline's, as a part of the processor time: a score is what the
// allocator costs by the rest.
HAK_INLINE double hak_budget_loss(const struct hak_budget *budget, double score)
{
    return score / (1 + score) - budget->baseline / (1 + budget->baseline);
}

HAK_INLINE bool hak_budget_is_low(const struct hak_budget *budget)
{
    return budget->ticks < HAK_BUDGET_STAKE;
}

// After so many ticks of its round a variant has this score: is that too much?
HAK_INLINE bool hak_budget_is_over(const struct hak_budget *budget, double score, uint32_t ticks)
{
    return hak_budget_loss(budget, score) * ticks > budget->ticks;
}

// Time in which nothing was tried.
HAK_INLINE void hak_budget_save(struct hak_budget *budget, uint32_t ticks)
{
    budget->ticks += HAK_BUDGET_PART * ticks;
    budget->ticks = budget->ticks < HAK_BUDGET_SAVED ? budget->ticks : HAK_BUDGET_SAVED;
}

// A round of a race. The baseline's score is known by the latest few.
HAK_INLINE void hak_budget_note(struct hak_budget *budget,
                                bool is_baseline,
                                double score,
                                uint32_t ticks)
{
    budget->ticks += HAK_BUDGET_PART * ticks;
    if (is_baseline) {
        budget->baseline += (score - budget->baseline) / (budget->baseline > 0 ? 4 : 1);
    } else {
        budget->ticks -= hak_budget_loss(budget, score) * ticks;
    }
}
