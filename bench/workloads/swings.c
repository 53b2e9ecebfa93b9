// swings.c -- a heap that grows, is freed whole, and grows again.
//
// It works as a program that handles requests or frames one after the other: each swing allocates blocks up to a given number of
// MiB, with sizes spread evenly over the doublings between two bounds, writes a word into each
// 4 KiB, reads them all, and frees all. Answer: the mixed sum of the words and stamps.
#include "support/args.h"
#include "support/block.h"

enum {
    STRIDE_BYTES = 4096,
    SMALLEST = 16,
    LARGEST = 1 << 26,
};

static unsigned doublings_between(uint64_t smallest, uint64_t largest)
{
    unsigned doublings = 1;
    while (smallest << (doublings + 1) <= largest) {
        doublings++;
    }
    return doublings;
}

static uint64_t swing_up(
    struct block *slots, uint64_t bytes, uint64_t smallest, unsigned doublings, struct prng *prng)
{
    uint64_t count = 0;
    for (uint64_t filled = 0; filled < bytes; filled += slots[count++].size) {
        uint64_t base = smallest << prng_below(prng, doublings);
        struct block *slot = &slots[count];
        block_take(slot, base + prng_below(prng, (uint32_t)base + 1), count);
        for (size_t i = STRIDE_BYTES; i + STRIDE_BYTES < slot->size; i += STRIDE_BYTES) {
            uint64_t word = count ^ i;
            memcpy(slot->bytes + i, &word, sizeof word);
        }
    }
    return count;
}

static uint64_t swing_read(const struct block *slots, uint64_t count)
{
    uint64_t answer = 0;
    for (uint64_t slot = 0; slot < count; slot++) {
        for (size_t i = STRIDE_BYTES; i + STRIDE_BYTES < slots[slot].size; i += STRIDE_BYTES) {
            uint64_t word;
            memcpy(&word, slots[slot].bytes + i, sizeof word);
            answer = prng_mix(answer + word);
        }
    }
    return answer;
}

int main(int argc, char **argv)
{
    struct args args =
        args_begin(argc, argv, "swings [MiB] [swings] [smallest size] [largest size] [seed]");
    uint64_t bytes = args_number(&args, "MiB", 640, 1, 1 << 16) << 20;
    uint64_t swings = args_number(&args, "swings", 6, 1, UINT32_MAX);
    uint64_t smallest = args_number(&args, "smallest", 1 << 20, SMALLEST, LARGEST / 2);
    uint64_t largest = args_number(&args, "largest", 1 << 25, 2 * smallest, LARGEST);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    const unsigned doublings = doublings_between(smallest, largest);
    struct block *slots = report_table(bytes / smallest + 1, sizeof *slots);
    uint64_t answer = 0;
    uint64_t blocks = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t swing = 0; swing < swings; swing++) {
        uint64_t count = swing_up(slots, bytes, smallest, doublings, &prng);
        answer = prng_mix(answer + swing_read(slots, count));
        for (uint64_t i = 0; i < count; i++) {
            answer += block_give(&slots[i], i);
        }
        blocks += count;
    }
    report_answer(answer, 2 * blocks, report_clock_ns() - begin_ns);
    return 0;
}
