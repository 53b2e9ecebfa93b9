// bench_fragment_stress.c -- leaves holes of one size, then asks for blocks of another.
//
// Each round fills the heap up to a fixed number of bytes with blocks around that round's size,
// then frees three quarters of all blocks at random. The survivors of earlier rounds sit between
// the holes, so an allocator that cannot reuse mixed holes grows without need. Answer: the mixed
// sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

enum {
    LIVE_BYTES = 24 << 20,
    // Every block has at least SIZE_MIN bytes, so this many slots always suffice.
    SIZE_MIN = 16,
    SLOTS = LIVE_BYTES / SIZE_MIN,
};

// Small and large in turn: each size has to fit into the holes of its opposite.
static const uint32_t round_sizes[] = {32, 2048, 96, 640, 24, 8192, 256, 48, 1200, 400};

struct heap {
    struct block *slots;
    uint32_t used;
    uint64_t live_bytes;
    uint64_t answer;
    uint64_t operations;
};

static void heap_fill(struct heap *heap, struct prng *prng, uint32_t size)
{
    while (heap->live_bytes < LIVE_BYTES) {
        uint32_t bytes = prng_between(prng, size - size / 4, size + size / 4);
        bytes = bytes < SIZE_MIN ? SIZE_MIN : bytes;
        block_take(&heap->slots[heap->used], bytes, bytes);
        heap->used++;
        heap->live_bytes += bytes;
        heap->operations++;
    }
}

// Frees the share (256 - keep) / 256 of all blocks, at random.
static void heap_thin(struct heap *heap, struct prng *prng, uint32_t keep)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < heap->used; i++) {
        struct block *block = &heap->slots[i];
        if (prng_below(prng, 256) < keep) {
            heap->slots[kept++] = *block;
            continue;
        }
        heap->live_bytes -= block->size;
        heap->answer += block_give(block, block->size);
        heap->operations++;
    }
    heap->used = kept;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "bench_fragment_stress [rounds] [seed]");
    uint64_t rounds = args_number(&args, "rounds", 30, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct heap heap = {.slots = report_table(SLOTS + 1, sizeof(struct block))};
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        heap_fill(&heap, &prng, round_sizes[round % (sizeof round_sizes / sizeof *round_sizes)]);
        heap_thin(&heap, &prng, 64);
    }
    heap_thin(&heap, &prng, 0);
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(heap.answer, heap.operations, elapsed_ns);
    return 0;
}
