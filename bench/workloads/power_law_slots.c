// power_law_slots.c -- random slots, sizes by a power law.
//
// Each thread replaces the blocks of random slots. A size is twice as likely as one twice as large,
// from 16 bytes to 256 KiB: many small blocks and a few large ones, as in servers. Every 16th
// replaced block goes to the neighbour thread, which frees it. Answer: the mixed sum of the stamps
// of all blocks freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <stdatomic.h>

enum {
    SIZE_LOG2_MIN = 4,
    SIZE_LOG2_MAX = 18,
    HAND_OVER_EVERY = 16,
    SLOTS_MAX = 1 << 24,
};

struct member {
    _Alignas(CREW_APART_BYTES) struct block *slots;
    uint32_t slot_count;
    uint64_t replacements;
    uint64_t answer;
    struct prng prng;
    struct member *neighbour;
    _Alignas(CREW_APART_BYTES) _Atomic(void *) letter; // a block another thread has left for us
};

// A zero bit halves the chance of each further doubling.
static size_t power_law_size(struct prng *prng)
{
    uint64_t bits = prng_next(prng);
    unsigned log2 = SIZE_LOG2_MIN;
    while ((bits & 1) == 0 && log2 + 1 < SIZE_LOG2_MAX) {
        bits >>= 1;
        log2++;
    }
    uint32_t base = (uint32_t)1 << log2;
    return base + prng_below(prng, base);
}

// Leaves the block for the neighbour, and frees the one left there before. The answer counts the
// block here, as the timing decides which thread frees it.
static uint64_t block_hand_over(struct member *to, struct block *block, uint64_t stamp)
{
    block_verify(block->bytes, block->size, stamp);
    uint64_t answer = prng_mix(stamp + block->size);
    free(atomic_exchange(&to->letter, block->bytes));
    return answer;
}

static void member_work(void *argument)
{
    struct member *member = argument;
    for (uint32_t i = 0; i < member->slot_count; i++) {
        block_take(&member->slots[i], power_law_size(&member->prng), i);
    }
    for (uint64_t i = 0; i < member->replacements; i++) {
        uint32_t victim = prng_below(&member->prng, member->slot_count);
        struct block *slot = &member->slots[victim];
        if (i % HAND_OVER_EVERY == 0) {
            member->answer += block_hand_over(member->neighbour, slot, victim);
        } else {
            member->answer += block_give(slot, victim);
        }
        block_take(slot, power_law_size(&member->prng), victim);
    }
    for (uint32_t i = 0; i < member->slot_count; i++) {
        member->answer += block_give(&member->slots[i], i);
    }
}

int main(int argc, char **argv)
{
    struct args args =
        args_begin(argc, argv, "power_law_slots [replacements] [slots] [threads] [seed]");
    uint64_t replacements = args_number(&args, "replacements", 15000000, 1, UINT64_MAX / 1024);
    uint32_t slots = (uint32_t)args_number(&args, "slots", 8192, 1, SLOTS_MAX);
    unsigned threads = (unsigned)args_number(&args, "threads", 1, 1, CREW_THREADS_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    args_end(&args);

    struct member *members = report_table(threads, sizeof *members);
    for (unsigned i = 0; i < threads; i++) {
        members[i].slots = report_table(slots, sizeof(struct block));
        members[i].slot_count = slots;
        members[i].replacements = replacements;
        members[i].prng = prng_seed(seed, i);
        members[i].neighbour = &members[(i + 1) % threads];
    }
    uint64_t elapsed_ns = crew_run(threads, member_work, members, sizeof *members);

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += members[i].answer;
        free(atomic_load(&members[i].letter));
    }
    report_answer(answer, 2 * threads * (replacements + slots), elapsed_ns);
    return 0;
}
