// aligned_heavy.c -- aligned blocks, from 16 bytes to 64 KiB.
//
// Random slots are replaced through aligned_alloc and posix_memalign in turn, every fourth by
// plain malloc. Small alignments are more frequent, as in programs: vectors and cache lines before
// pages. Every address is checked. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

#include <stddef.h>

enum {
    SLOTS = 4000,
    SIZE_MIN = 16,
    SIZE_MAX_ORDINARY = 2048,
    SIZE_MAX_RARE = 100000,
};

static const uint32_t alignments[] = {16, 16, 32, 32, 64, 64, 64, 128, 256, 512, 1024, 4096};
enum { ALIGNMENTS = sizeof alignments / sizeof *alignments, ALIGNMENT_RARE = 65536 };

static void *aligned_take(uint64_t turn, size_t alignment, size_t *size)
{
    void *memory = NULL;
    switch (turn % 4) {
    case 0:
    case 2:
        // C11 asks for a multiple of the alignment.
        *size = (*size + alignment - 1) / alignment * alignment;
        memory = aligned_alloc(alignment, *size);
        break;
    case 1:
        if (posix_memalign(&memory, alignment, *size) != 0) {
            memory = NULL;
        }
        break;
    default:
        alignment = _Alignof(max_align_t);
        memory = malloc(*size);
        break;
    }
    block_require(memory);
    if ((uintptr_t)memory % alignment != 0) {
        report_wrong("a block is not aligned as asked for");
    }
    return memory;
}

static void slot_take(struct block *slot, struct prng *prng, uint64_t turn, uint32_t index)
{
    bool is_rare = prng_below(prng, 256) == 0;
    size_t alignment = is_rare ? ALIGNMENT_RARE : alignments[prng_below(prng, ALIGNMENTS)];
    slot->size = prng_between(prng, SIZE_MIN, is_rare ? SIZE_MAX_RARE : SIZE_MAX_ORDINARY);
    slot->bytes = aligned_take(turn, alignment, &slot->size);
    block_stamp(slot->bytes, slot->size, index);
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "aligned_heavy [replacements] [seed]");
    uint64_t replacements = args_number(&args, "replacements", 5000000, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *slots = report_table(SLOTS, sizeof *slots);
    uint64_t answer = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint32_t i = 0; i < SLOTS; i++) {
        slot_take(&slots[i], &prng, i, i);
    }
    for (uint64_t i = 0; i < replacements; i++) {
        uint32_t victim = prng_below(&prng, SLOTS);
        answer += block_give(&slots[victim], victim);
        slot_take(&slots[victim], &prng, i, victim);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        answer += block_give(&slots[i], i);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * (replacements + SLOTS), elapsed_ns);
    return 0;
}
