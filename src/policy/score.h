// score.h -- what a strategy costs: one figure from a round's counters.
//
// Threads   any: a pure function.
//
// The score is the allocator's cost as processor time, divided by the processor time of the program's own
// work. So a round in which the program does more is not dearer, and time that it waits for a processor does
// not count. The allocator's slow paths are measured, page faults count 700 ns each (a fault of 4 KiB takes
// 0.5 to 1 µs on machines of today), and a resident gigabyte costs as much as an eighth of a processor,
// which is about the ratio of their rents.
#pragma once

#include "base/compiler.h"

// The counters of a round.
struct hak_round {
    uint64_t wall_ns;
    uint64_t processor_ns; // of all threads
    uint64_t allocator_ns; // in slow paths
    uint64_t faults;
    uint64_t resident_bytes; // at its end
};

#define HAK_FAULT_NS          700
#define HAK_GIB_IN_PROCESSORS 0.125
#define HAK_IDLE_PART         20 // a program that works less than this part of a round has no score

// Does the program work so little that a round says nothing?
HAK_INLINE bool hak_score_is_idle(uint64_t processor_ns, uint64_t wall_ns)
{
    return processor_ns < wall_ns / HAK_IDLE_PART;
}

// The cost of `bytes` of resident memory, in processors.
HAK_INLINE double hak_score_of_memory(uint64_t bytes)
{
    return (double)bytes / (1 << 30) * HAK_GIB_IN_PROCESSORS;
}

// Less is better; below 0: the program was idle, and the round says nothing.
HAK_INLINE double hak_score_of_round(const struct hak_round *round)
{
    const uint64_t overhead = round->allocator_ns + round->faults * HAK_FAULT_NS;
    if (hak_score_is_idle(round->processor_ns, round->wall_ns)) {
        return -1;
    }
    const double work = round->processor_ns > overhead * 8 / 7
                            ? (double)(round->processor_ns - overhead)
                            : (double)round->processor_ns / 8;
    return (double)overhead / work + hak_score_of_memory(round->resident_bytes);
}
