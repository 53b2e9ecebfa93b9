// growth.h -- is the time that a longer magazine saves worth the memory that it holds?
//
// Threads   none: a pure function of counters; the holder of the cache's lock calls it.
//
// If a magazine swings between full and empty, a longer one would save at most what its refills and spills have
// cost since the last question: a fraction of the time that has passed. What it could hold in addition is a fraction of the
// heap. If many magazines swing in turn, each now and then, longer ones would save little, and each would keep
// memory that the next one needs. The clock advances by ticks: within one, the cost is compared with a whole tick.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

// The cost of moving a block to its slab and back; and of a refill with its spill, as a number of such blocks. Both are eight
// times the cost when all data is in the processor's caches. So a fraction of the time weighs as much as eight times
// that fraction of the memory.
enum { HAK_GROWTH_BLOCK_NS = 80, HAK_GROWTH_REFILL_BLOCKS = 10 };

// The last question about a magazine for which the clock had advanced, or growing paid. Each magazine has one, so both fields are
// short: they wrap around, `at` after 78 hours, `cost` after 343 s.
struct hak_growth {
    uint32_t at;   // when, in 2^16 ns
    uint32_t cost; // total cost of the magazine's refills until then, in blocks
};
enum { HAK_GROWTH_AT_LOG2 = 16 };

// The present figures: the magazine's refills, and the blocks that they moved, since the start; how much more it could
// hold if it grew; the heap's size.
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
