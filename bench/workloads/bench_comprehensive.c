// bench_comprehensive.c -- every order of freeing against every size.
//
// For each of nine sizes, a set of blocks is allocated and freed newest first, oldest first, in
// random order, and interleaved with new allocations. Prints one line of operations a second for
// each order and size. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BLOCKS = 1000,
    ORDERS = 4,
    // Sets of larger blocks make the OS work, so a round of them takes longer.
    LARGE_BYTES = 4096,
    LARGE_ROUNDS_DIVISOR = 20,
};

static const char *const order_names[ORDERS] = {"lifo", "fifo", "random", "interleaved"};
static const size_t sizes[] = {16, 32, 64, 128, 256, 512, 1024, 4096, 16384};

static uint64_t lifo(struct block *set, size_t size, const uint32_t *shuffled)
{
    (void)shuffled;
    uint64_t answer = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block_take(&set[i], size, i);
    }
    for (uint32_t i = BLOCKS; i-- > 0;) {
        answer += block_give(&set[i], i);
    }
    return answer;
}

static uint64_t fifo(struct block *set, size_t size, const uint32_t *shuffled)
{
    (void)shuffled;
    uint64_t answer = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block_take(&set[i], size, i);
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        answer += block_give(&set[i], i);
    }
    return answer;
}

static uint64_t scattered(struct block *set, size_t size, const uint32_t *shuffled)
{
    uint64_t answer = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block_take(&set[i], size, i);
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        answer += block_give(&set[shuffled[i]], shuffled[i]);
    }
    return answer;
}

// Two steps forward, one back: each second allocation frees the oldest remaining block.
static uint64_t interleaved(struct block *set, size_t size, const uint32_t *shuffled)
{
    (void)shuffled;
    uint64_t answer = 0;
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block_take(&set[i], size, i);
        if (i % 2 == 1) {
            answer += block_give(&set[oldest], oldest);
            oldest++;
        }
    }
    for (; oldest < BLOCKS; oldest++) {
        answer += block_give(&set[oldest], oldest);
    }
    return answer;
}

static uint64_t (*const orders[ORDERS])(struct block *, size_t, const uint32_t *) = {
    lifo, fifo, scattered, interleaved};

static void shuffle(uint32_t *order, struct prng *prng)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        order[i] = i;
    }
    for (uint32_t i = BLOCKS - 1; i > 0; i--) {
        uint32_t other = prng_below(prng, i + 1);
        uint32_t swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "bench_comprehensive [rounds] [seed]");
    uint64_t rounds = args_number(&args, "rounds", 400, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *set = report_table(BLOCKS, sizeof *set);
    uint32_t *shuffled = report_table(BLOCKS, sizeof *shuffled);
    shuffle(shuffled, &prng);

    uint64_t answer = 0;
    uint64_t total_ns = 0;
    uint64_t operations = 0;
    for (unsigned order = 0; order < ORDERS; order++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint64_t count = sizes[i] < LARGE_BYTES ? rounds : 1 + rounds / LARGE_ROUNDS_DIVISOR;
            uint64_t begin_ns = report_clock_ns();
            for (uint64_t round = 0; round < count; round++) {
                answer += orders[order](set, sizes[i], shuffled);
            }
            uint64_t elapsed_ns = report_clock_ns() - begin_ns;
            double millions = (double)(2 * count * BLOCKS) * 1e3 / (double)elapsed_ns;
            printf("%-12s %6zu bytes %9.1f M ops/s\n", order_names[order], sizes[i], millions);
            total_ns += elapsed_ns;
            operations += 2 * count * BLOCKS;
        }
    }
    report_answer(answer, operations, total_ns);
    return 0;
}
