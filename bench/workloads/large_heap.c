// large_heap.c -- a heap of a gibibyte in which random blocks are replaced.
//
// Fills the heap with blocks of 64 to 4,096 bytes, most of them small, replaces random ones, and
// frees all in random order. Each block is written in full when it is new, as it would be by a
// cache or a database. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

enum {
    SIZE_LOG2_MIN = 6,
    SIZE_LOG2_MAX = 12,
    MIB_MAX = 1 << 16,
};

// One of the six doublings from 64 to 4,096 bytes, and within it any size.
static size_t heap_size(struct prng *prng)
{
    uint32_t base = (uint32_t)1 << prng_between(prng, SIZE_LOG2_MIN, SIZE_LOG2_MAX - 1);
    return (size_t)base + prng_below(prng, base + 1);
}

static size_t slot_take(struct block *slot, struct prng *prng, uint64_t stamp)
{
    slot->size = heap_size(prng);
    slot->bytes = block_require(malloc(slot->size));
    memset(slot->bytes, (int)(stamp & 0xff), slot->size);
    block_stamp(slot->bytes, slot->size, stamp);
    return slot->size;
}

// Puts the numbers below `count` in random order, each one as it comes into a place before it.
static void shuffle(uint32_t *order, uint32_t count, struct prng *prng)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = prng_below(prng, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "large_heap [MiB] [replacements] [seed]");
    uint64_t live_bytes = args_number(&args, "MiB", 1024, 1, MIB_MAX) << 20;
    uint64_t replacements = args_number(&args, "replacements", 500000, 1, UINT64_MAX / 1024);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *slots = report_table((live_bytes >> SIZE_LOG2_MIN) + 1, sizeof *slots);
    uint32_t *order = report_table((live_bytes >> SIZE_LOG2_MIN) + 1, sizeof *order);
    uint32_t used = 0;
    uint64_t answer = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t filled = 0; filled < live_bytes; used++) {
        filled += slot_take(&slots[used], &prng, used);
    }
    shuffle(order, used, &prng);
    for (uint64_t i = 0; i < replacements; i++) {
        uint32_t victim = prng_below(&prng, used);
        answer += block_give(&slots[victim], victim);
        slot_take(&slots[victim], &prng, victim);
    }
    for (uint32_t i = 0; i < used; i++) {
        answer += block_give(&slots[order[i]], order[i]);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * (used + replacements), elapsed_ns);
    return 0;
}
