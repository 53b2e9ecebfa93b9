// growth.h -- is the time that a longer magazine saves worth the memory that it holds?
//
// Threads   none: a pure function of counters; the holder of the cache's lock calls it.
//
// A magazine that swings between full and empty would save, were it longer, at best what its refills and
// spills have cost since it was last asked about: a part of the time that has passed. What it may hold more is
// a part of the heap. Many magazines that swing in turn, each once in a while, save little, and each
// would keep what the next one needs. The clock goes on by ticks: what was saved since the last one is compared with a whole one.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

// What a block that goes to its slab and comes back costs, and how many such a refill with its spill: eight times what
// they take where all of it is in the processor's caches. So a part of the time counts as much as eight
// times that part of the memory.
enum { HAK_GROWTH_BLOCK_NS = 80, HAK_GROWTH_REFILL_BLOCKS = 10 };

// When a magazine was last asked about, and the clock went on or it was worth it. There is one for each magazine: so both are
// short, and begin anew after 78 hours and 343 s.
struct hak_growth {
    uint32_t at;   // in 2^16 ns
    uint32_t cost; // what its refills had cost until then, in blocks
};
enum { HAK_GROWTH_AT_LOG2 = 16 };

// What is so now: the refills of the magazine, and the blocks that they moved, since the start; what it may hold
// `more` if it grows, and the heap's size.
struct hak_growth_question {
    uint64_t now_ns;
    uint64_t refills;
    uint64_t refilled_blocks;
    size_t more_bytes;
    size_t heap_bytes;
};

HAK_INLINE bool hak_growth_ask(struct hak_growth *last, struct hak_growth_question question)
{
    const uint32_t now = (uint32_t)(question.now_ns >> HAK_GROWTH_AT_LOG2);
    const uint32_t cost =
        (uint32_t)(question.refilled_blocks + HAK_GROWTH_REFILL_BLOCKS * question.refills);
    const bool goes_on = now != last->at;
    const uint64_t elapsed_ns =
        goes_on ? (uint64_t)(now - last->at) << HAK_GROWTH_AT_LOG2 : HAK_OS_TICK_NS;
    const uint64_t saved_ns = (uint64_t)(cost - last->cost) * HAK_GROWTH_BLOCK_NS;
    const bool pays =
        saved_ns != 0 && elapsed_ns / saved_ns <= question.heap_bytes / question.more_bytes;
    if (goes_on || pays) {
        *last = (struct hak_growth){now, cost};
    }
    return pays;
}
