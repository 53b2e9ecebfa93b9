// relevance.c -- see relevance.h.
#include "policy/relevance.h"

#include "base/options.h"
#include "policy/score.h"

static bool is_much(const struct hak_activity *activity, double cost_ns)
{
    return cost_ns >= HAK_RELEVANT_PART * (double)activity->processor_ns;
}

static double fault_ns(const struct hak_activity *activity)
{
    return (double)activity->faults * HAK_FAULT_NS;
}

// The cost of the memory that waits, as processor time.
static double waiting_ns(const struct hak_activity *activity)
{
    return hak_score_of_memory(activity->waiting_bytes) * (double)activity->processor_ns;
}

static double slow_ns(const struct hak_activity *activity)
{
    return (double)activity->slow_calls * HAK_SLOW_CALL_NS;
}

bool hak_relevance_of(uint32_t option,
                      uint64_t value,
                      uint64_t baseline,
                      const struct hak_activity *activity)
{
    if (hak_score_is_idle(activity->processor_ns, activity->wall_ns)) {
        return false;
    }
    switch (option) {
    case HAK_OPTION_IS_parcel_bytes:
        return activity->sent_parcels > 0 && is_much(activity, slow_ns(activity));
    case HAK_OPTION_IS_magazine_bytes:
        // A higher bound matters when magazines come near to the present one, a lower one when they are above it.
        return activity->magazine_bytes > (value > baseline ? baseline / 2 : value) &&
               is_much(activity, slow_ns(activity));
    case HAK_OPTION_IS_huge_start_bytes:
        return activity->maps > 0 && is_much(activity, fault_ns(activity));
    default: // how much waits, and for how long
        return is_much(activity, fault_ns(activity) + waiting_ns(activity));
    }
}
