// budget.h -- how much processor time the learner may lose by trying strategies.
//
// Threads   none: the state is its caller's.
//
// A strategy that is worse than the baseline costs the program time. These losses may be a hundredth of its processor
// time. Each tick of a race adds that to the budget, and each round of another strategy takes out what it cost more
// than the baseline. While the budget is less than the stake, the baseline plays. A round that costs more than the
// budget is cut short, and its strategy leaves the race.
#pragma once

#include "base/compiler.h"

#define HAK_BUDGET_PART  0.01 // of the program's processor time
#define HAK_BUDGET_STAKE 0.06 // ticks of it: more than the noise in most programs' rounds
#define HAK_BUDGET_SAVED (3 * HAK_BUDGET_STAKE) // at most this is saved

struct hak_budget {
    double ticks;    // of the program's time that trying may cost now
    double baseline; // its recent score (score.h); 0: not known yet
};

// By how much the score exceeds the baseline's, as a part of the processor time. (A score is the
// allocator's cost divided by the rest of that time.)
HAK_INLINE double hak_budget_loss(const struct hak_budget *budget, double score)
{
    return score / (1 + score) - budget->baseline / (1 + budget->baseline);
}

HAK_INLINE bool hak_budget_is_low(const struct hak_budget *budget)
{
    return budget->ticks < HAK_BUDGET_STAKE;
}

// Has a round with this score after so many ticks cost more than the budget?
HAK_INLINE bool hak_budget_is_over(const struct hak_budget *budget, double score, uint32_t ticks)
{
    return hak_budget_loss(budget, score) * ticks > budget->ticks;
}

// Add the budget of ticks in which nothing was tried.
HAK_INLINE void hak_budget_save(struct hak_budget *budget, uint32_t ticks)
{
    budget->ticks += HAK_BUDGET_PART * ticks;
    budget->ticks = budget->ticks < HAK_BUDGET_SAVED ? budget->ticks : HAK_BUDGET_SAVED;
}

// Account for a round of a race. The baseline's score is a moving mean of its latest few rounds.
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
