// realloc_growth.c -- buffers that grow by realloc, in the ways programs do it.
//
// Texts that grow by half of their size, many arrays that grow side by side by a fixed step, one
// large buffer that grows by a hundredth at a time, and buffers that are cut back. Each buffer's
// content is checked after it has been moved. Answer: the mixed sum of the lengths and last words.
#include "support/args.h"
#include "support/block.h"

enum {
    TEXT_BYTES_MIN = 16,
    TEXT_BYTES_MAX = 256 << 10,
    ARRAYS = 400,
    ARRAY_STEP_BYTES = 64,
    ARRAY_STEPS = 120,
    LARGE_BYTES_MIN = 64 << 10,
    LARGE_BYTES_MAX = 32 << 20,
    CUT_BYTES = 20000,
};

struct tally {
    uint64_t answer;
    uint64_t operations;
};

// realloc to `size`, with the stamp moved from the old end to the new one.
static void buffer_resize(struct tally *tally, struct block *buffer, size_t size, uint64_t stamp)
{
    uint64_t head = 0;
    buffer->bytes = block_require(realloc(buffer->bytes, size));
    buffer->size = size;
    memcpy(&head, buffer->bytes, sizeof head);
    if (head != stamp) {
        report_wrong("realloc has lost the content");
    }
    block_stamp(buffer->bytes, size, stamp);
    tally->operations++;
}

static void buffer_free(struct tally *tally, struct block *buffer, uint64_t stamp)
{
    tally->answer += block_give(buffer, stamp);
    tally->operations++;
}

// A text is written to the end each time before it grows, byte i being i modulo 251.
static void grow_text(struct tally *tally, uint64_t number)
{
    size_t size = TEXT_BYTES_MIN + number % TEXT_BYTES_MIN;
    size_t written = 0;
    unsigned char *text = block_require(malloc(size));
    while (size < TEXT_BYTES_MAX) {
        for (; written < size; written++) {
            text[written] = (unsigned char)(written % 251);
        }
        size += size / 2;
        text = block_require(realloc(text, size));
        tally->operations++;
        for (size_t i = 0; i < written; i += 1 + written / 16) {
            if (text[i] != i % 251) {
                report_wrong("realloc has lost the content");
            }
        }
    }
    tally->answer += prng_mix(size + text[written - 1]);
    tally->operations += 2;
    free(text);
}

static void grow_arrays(struct tally *tally, struct block *arrays)
{
    for (uint32_t i = 0; i < ARRAYS; i++) {
        block_take(&arrays[i], ARRAY_STEP_BYTES, i);
    }
    tally->operations += ARRAYS;
    for (uint32_t step = 2; step <= ARRAY_STEPS; step++) {
        for (uint32_t i = 0; i < ARRAYS; i++) {
            buffer_resize(tally, &arrays[i], (size_t)step * ARRAY_STEP_BYTES, i);
        }
    }
    for (uint32_t i = 0; i < ARRAYS; i++) {
        buffer_free(tally, &arrays[i], i);
    }
}

static void grow_large(struct tally *tally, uint64_t stamp)
{
    struct block buffer;
    block_take(&buffer, LARGE_BYTES_MIN, stamp);
    tally->operations++;
    while (buffer.size < LARGE_BYTES_MAX) {
        buffer_resize(tally, &buffer, buffer.size + buffer.size / 100, stamp);
    }
    buffer_free(tally, &buffer, stamp);
}

// Read buffers are often too large at first: shrunk to the needed size, they stay for a while.
static void cut_back(struct tally *tally, struct block *kept, struct prng *prng)
{
    for (uint32_t i = 0; i < ARRAYS; i++) {
        block_take(&kept[i], CUT_BYTES, i);
        tally->operations++;
        buffer_resize(tally, &kept[i], prng_between(prng, 16, CUT_BYTES / 4), i);
    }
    for (uint32_t i = 0; i < ARRAYS; i++) {
        buffer_free(tally, &kept[i], i);
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "realloc_growth [rounds] [seed]");
    uint64_t rounds = args_number(&args, "rounds", 60, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *buffers = report_table(ARRAYS, sizeof *buffers);
    struct tally tally = {0};
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < TEXT_BYTES_MIN; i++) {
            grow_text(&tally, round + i);
        }
        grow_arrays(&tally, buffers);
        grow_large(&tally, round);
        cut_back(&tally, buffers, &prng);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(tally.answer, tally.operations, elapsed_ns);
    return 0;
}
