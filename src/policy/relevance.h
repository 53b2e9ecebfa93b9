// relevance.h -- can the value of an option make a difference to this program?
//
// Threads   any: pure functions.
//
// Most options change the cost of one kind of the allocator's work. If a program causes little of that work, no
// value of the option gains anything, and to try one takes time from the strategies that matter. The work is
// weighed as in the score (score.h): page faults, calls of slow paths at a typical price each, free memory that
// waits. From a hundredth of the program's processor time on it is relevant. In an idle program nothing is.
#pragma once

#include "base/compiler.h"

// What the program and the allocator have done in some time. All of it is always counted, also while nothing is timed.
struct hak_activity {
    uint64_t wall_ns;
    uint64_t processor_ns; // of all threads
    uint64_t faults;
    uint64_t slow_calls;   // refills and spills of magazines, parcels sent
    uint64_t sent_parcels; // of them
    uint64_t maps;         // of superslabs and of blocks with a mapping of their own
    // At the end of that time:
    uint64_t waiting_bytes;  // free, not yet given back
    uint64_t magazine_bytes; // that grown magazines may hold
};

// An order of magnitude: debug_timing says 140 in producer_consumer and 800 in server_phases, on an AMD EPYC.
#define HAK_SLOW_CALL_NS  300
#define HAK_RELEVANT_PART 0.01 // of the processor time

// `option`: the number of an option that a strategy sets, to `value` in place of `baseline`.
HAK_INTERNAL bool hak_relevance_of(uint32_t option,
                                   uint64_t value,
                                   uint64_t baseline,
                                   const struct hak_activity *activity);
