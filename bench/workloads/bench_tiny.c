// bench_tiny.c -- the smallest question: what does a small block cost, straight through?
//
// Allocates 100 blocks of 16 bytes and frees them in the same order, again and again. Everything
// fits the first cache level, so this is the price of the two calls. Answer: the sum of the words
// read back.
#include "support/args.h"
#include "support/block.h"

enum { BLOCKS_MAX = 65536 };

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "bench_tiny [rounds] [bytes] [blocks]");
    uint64_t rounds = args_number(&args, "rounds", 10000000, 1, UINT32_MAX);
    size_t bytes = args_number(&args, "bytes", 16, sizeof(uint64_t), 1 << 20);
    uint64_t count = args_number(&args, "blocks", 100, 1, BLOCKS_MAX);
    args_end(&args);

    void **blocks = report_table(count, sizeof(void *));
    uint64_t answer = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < count; i++) {
            uint64_t *block = block_require(malloc(bytes));
            *block = round ^ i;
            blocks[i] = block;
        }
        for (uint64_t i = 0; i < count; i++) {
            answer += *(uint64_t *)blocks[i];
            free(blocks[i]);
        }
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * rounds * count, elapsed_ns);
    return 0;
}
