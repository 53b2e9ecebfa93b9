// large_blocks.c -- blocks from 64 KiB to 32 MiB, replaced at random.
//
// Sizes are spread evenly over the doublings. Mode `pages` writes a word into each 4 KiB of every
// block, as a program that uses its buffers does; mode `ends` writes only the first and the last
// word, so that the cost of the calls alone shows. Answer: the mixed sum of the stamps freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

enum {
    SIZE_LOG2_MIN = 16,
    SIZE_LOG2_MAX = 25,
    SLOTS = 12,
    STRIDE_BYTES = 4096,
};

struct member {
    _Alignas(CREW_APART_BYTES) struct block slots[SLOTS];
    uint64_t replacements;
    bool writes_pages;
    uint64_t answer;
    struct prng prng;
};

static size_t large_size(struct prng *prng)
{
    uint32_t base = (uint32_t)1 << prng_between(prng, SIZE_LOG2_MIN, SIZE_LOG2_MAX - 1);
    return (size_t)base + prng_below(prng, base + 1);
}

static void slot_take(struct member *member, uint32_t index)
{
    struct block *slot = &member->slots[index];
    block_take(slot, large_size(&member->prng), index);
    if (member->writes_pages) {
        for (size_t i = STRIDE_BYTES; i + STRIDE_BYTES < slot->size; i += STRIDE_BYTES) {
            memcpy(slot->bytes + i, &i, sizeof i);
        }
    }
}

static void slot_give(struct member *member, uint32_t index)
{
    struct block *slot = &member->slots[index];
    if (member->writes_pages) {
        size_t difference = 0;
        for (size_t i = STRIDE_BYTES; i + STRIDE_BYTES < slot->size; i += STRIDE_BYTES) {
            size_t read;
            memcpy(&read, slot->bytes + i, sizeof read);
            difference |= read ^ i;
        }
        if (difference != 0) {
            report_wrong("a page of a large block has changed");
        }
    }
    member->answer += block_give(slot, index);
}

static void member_work(void *argument)
{
    struct member *member = argument;
    for (uint32_t i = 0; i < SLOTS; i++) {
        slot_take(member, i);
    }
    for (uint64_t i = 0; i < member->replacements; i++) {
        uint32_t victim = prng_below(&member->prng, SLOTS);
        slot_give(member, victim);
        slot_take(member, victim);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        slot_give(member, i);
    }
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"pages", "ends", NULL};
    struct args args =
        args_begin(argc, argv, "large_blocks [pages | ends] [replacements] [threads] [seed]");
    bool writes_pages = args_word(&args, "mode", modes) == 0;
    uint64_t replacements =
        args_number(&args, "replacements", writes_pages ? 1200 : 100000, 1, UINT32_MAX);
    unsigned threads = (unsigned)args_number(&args, "threads", 1, 1, CREW_THREADS_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    args_end(&args);

    struct member *members = report_table(threads, sizeof *members);
    for (unsigned i = 0; i < threads; i++) {
        members[i].replacements = replacements;
        members[i].writes_pages = writes_pages;
        members[i].prng = prng_seed(seed, i);
    }
    uint64_t elapsed_ns = crew_run(threads, member_work, members, sizeof *members);

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += members[i].answer;
    }
    report_answer(answer, 2 * threads * (replacements + SLOTS), elapsed_ns);
    return 0;
}
