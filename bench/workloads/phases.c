// phases.c -- a program whose phases want different sizes.
//
// Each phase builds up live blocks around its own size, replaces some at random, and frees all but
// one in twenty, which stays for the next three phases. What one phase leaves free has to serve the
// next, or memory grows with each phase. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

enum {
    PHASE_BYTES = 24 << 20,
    SIZE_MIN = 16,
    SLOTS = PHASE_BYTES / SIZE_MIN,
    REPLACEMENTS = 100000,
    KEEP_ONE_IN = 20,
    KEPT_PHASES = 3,
};

// The largest size of each phase; the smallest is a quarter of it.
static const uint32_t phase_sizes[] = {64, 1024, 16384, 256, 65536, 128, 4096, 512};

struct survivors {
    struct block *blocks;
    uint32_t count;
};

static size_t phase_size(struct prng *prng, uint32_t size_max)
{
    return prng_between(prng, size_max / 4, size_max);
}

static uint64_t survivors_free(struct survivors *survivors)
{
    uint64_t answer = 0;
    for (uint32_t i = 0; i < survivors->count; i++) {
        answer += block_give(&survivors->blocks[i], survivors->blocks[i].size);
    }
    survivors->count = 0;
    return answer;
}

// Returns the number of blocks allocated, each of which is freed sooner or later.
static uint64_t phase_run(struct block *slots,
                          struct survivors *kept,
                          uint32_t size_max,
                          struct prng *prng,
                          uint64_t *answer)
{
    uint32_t used = 0;
    for (uint64_t filled = 0; filled < PHASE_BYTES; used++) {
        size_t size = phase_size(prng, size_max);
        block_take(&slots[used], size, size);
        filled += size;
    }
    // Few large blocks are replaced less often: a phase moves a limited number of bytes.
    uint32_t replacements = used < REPLACEMENTS ? used : REPLACEMENTS;
    for (uint32_t i = 0; i < replacements; i++) {
        struct block *victim = &slots[prng_below(prng, used)];
        *answer += block_give(victim, victim->size);
        size_t size = phase_size(prng, size_max);
        block_take(victim, size, size);
    }
    for (uint32_t i = 0; i < used; i++) {
        if (prng_below(prng, KEEP_ONE_IN) == 0) {
            kept->blocks[kept->count++] = slots[i];
        } else {
            *answer += block_give(&slots[i], slots[i].size);
        }
    }
    return used + replacements;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "phases [phases] [seed]");
    uint64_t phases = args_number(&args, "phases", 32, 1, UINT32_MAX);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    struct block *slots = report_table(SLOTS + 1, sizeof *slots);
    struct survivors kept[KEPT_PHASES];
    for (unsigned i = 0; i < KEPT_PHASES; i++) {
        kept[i].blocks = report_table(SLOTS + 1, sizeof *slots);
        kept[i].count = 0;
    }
    uint64_t answer = 0;
    uint64_t blocks = 0;
    uint64_t begin_ns = report_clock_ns();
    for (uint64_t phase = 0; phase < phases; phase++) {
        struct survivors *oldest = &kept[phase % KEPT_PHASES];
        uint32_t size_max = phase_sizes[phase % (sizeof phase_sizes / sizeof *phase_sizes)];
        answer += survivors_free(oldest);
        blocks += phase_run(slots, oldest, size_max, &prng, &answer);
    }
    for (unsigned i = 0; i < KEPT_PHASES; i++) {
        answer += survivors_free(&kept[i]);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * blocks, elapsed_ns);
    return 0;
}
