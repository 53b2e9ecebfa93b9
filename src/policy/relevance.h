// relevance.h -- can it make a difference to this program what an option is set to?
//
// Layer     policy
// Threads   any: pure functions.
//
// Most options change what one kind of the allocator's work costs. Where a program has little of that to do, no
// value can gain it anything, and to try one is time that a strategy which matters does not get. The bounds are
// the score's (score.h): page faults, calls of slow paths at a typical price each, free memory that waits; what
// is left is less than a hundredth of the program's processor time. While a program is idle, nothing matters.
#pragma once

#include "base/compiler.h"

// What the program and the allocator have done for it in some time. All counted always, also while nothing is timed.
struct hak_activity {
    uint64_t wall_ns;
    uint64_t processor_ns; // of all threads
    uint64_t faults;
    uint64_t slow_calls;   // refills and spills of magazines, parcels sent
    uint64_t sent_parcels; // of them
    uint64_t maps;         // of superslabs and blocks of their own
    // These as they stand:
    uint64_t waiting_bytes;  // free, not yet given back
    uint64_t magazine_bytes; // that grown magazines may hold
};

// Of the order: by debug_timing 140 in producer_consumer and 800 in server_phases, on an AMD EPYC.
#define HAK_SLOW_CALL_NS  300
#define HAK_RELEVANT_PART 0.01 // of the processor time

// `option` is the number of one that a strategy sets, `value` what it sets it to in place of `baseline`.
HAK_INTERNAL bool hak_relevance_of(uint32_t option,
                                   uint64_t value,
                                   uint64_t baseline,
                                   const struct hak_activity *activity);
