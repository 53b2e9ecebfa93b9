// simple_bench.c -- a simple first test of an allocator: allocate, write, free.
//
// For sizes from 8 bytes to 64 KiB: first one block at a time, then sets of 64 live blocks. Blocks
// up to 4 KiB are written in full. Answer: the mixed sum of what was read back.
#include "support/args.h"
#include "support/block.h"

enum {
    SET = 64,
    WRITTEN_BYTES_MAX = 4096,
    // Sets of larger blocks make the OS work, and take that much longer.
    LARGE_BYTES = 2048,
    LARGE_COUNT_DIVISOR = 40,
};

static uint64_t one_at_a_time(size_t size, uint64_t count)
{
    uint64_t answer = 0;
    size_t written = size < WRITTEN_BYTES_MAX ? size : WRITTEN_BYTES_MAX;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *bytes = block_require(malloc(size));
        memset(bytes, (int)(i & 0xff), written);
        answer += bytes[written / 2];
        free(bytes);
    }
    return answer;
}

static uint64_t in_sets(size_t size, uint64_t count)
{
    struct block set[SET];
    uint64_t answer = 0;
    for (uint64_t done = 0; done < count; done += SET) {
        for (uint64_t i = 0; i < SET; i++) {
            block_take(&set[i], size, done + i);
        }
        for (uint64_t i = 0; i < SET; i++) {
            answer += block_give(&set[i], done + i);
        }
    }
    return answer;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "simple_bench [blocks_per_size]");
    uint64_t count = args_number(&args, "blocks_per_size", 640000, SET, UINT32_MAX);
    args_end(&args);

    uint64_t answer = 0;
    uint64_t operations = 0;
    uint64_t begin_ns = report_clock_ns();
    for (size_t size = 8; size <= 65536; size *= 2) {
        uint64_t blocks = size < LARGE_BYTES ? count : SET + count / LARGE_COUNT_DIVISOR;
        blocks -= blocks % SET;
        answer += prng_mix(one_at_a_time(size, blocks));
        answer += in_sets(size, blocks);
        operations += 4 * blocks;
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, operations, elapsed_ns);
    return 0;
}
