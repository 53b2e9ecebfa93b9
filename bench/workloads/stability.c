// stability.c -- a long run whose memory has to stay flat.
//
// Cycles of the same work: new threads fill slots with blocks of mixed sizes, replace them at
// random, free all and end. Resident memory is read after each cycle; the second half of the
// run must not need more than the first, except for a small allowance. For a long run give more
// cycles: 100 take about a second. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SLOTS = 4000,
    REPLACEMENTS = 100000,
    // What the second half may need above the first: an allocator with a timer for giving pages back
    // is not at the same point of its interval at each reading.
    ALLOWANCE_PERCENT = 10,
    ALLOWANCE_KIB = 8 << 10,
};

struct worker {
    struct block slots[SLOTS];
    struct prng prng;
    uint64_t answer;
};

// Mostly small, one in eight up to 2 KiB, one in 64 up to 64 KiB.
static size_t mixed_size(struct prng *prng)
{
    uint32_t kind = prng_below(prng, 64);
    if (kind == 0) {
        return prng_between(prng, 2048, 65536);
    }
    return kind < 8 ? prng_between(prng, 256, 2048) : prng_between(prng, 8, 256);
}

static void worker_cycle(void *member)
{
    struct worker *worker = member;
    for (uint32_t i = 0; i < SLOTS; i++) {
        block_take(&worker->slots[i], mixed_size(&worker->prng), i);
    }
    for (uint32_t i = 0; i < REPLACEMENTS; i++) {
        uint32_t victim = prng_below(&worker->prng, SLOTS);
        worker->answer += block_give(&worker->slots[victim], victim);
        block_take(&worker->slots[victim], mixed_size(&worker->prng), victim);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        worker->answer += block_give(&worker->slots[i], i);
    }
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "stability [cycles] [threads] [seed]");
    uint64_t cycles = args_number(&args, "cycles", 100, 4, UINT32_MAX);
    unsigned threads = (unsigned)args_number(&args, "threads", 2, 1, CREW_THREADS_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    args_end(&args);

    struct worker *workers = report_table(threads, sizeof *workers);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].prng = prng_seed(seed, i);
    }
    uint64_t half_peaks_kib[2] = {0, 0};
    uint64_t elapsed_ns = 0;
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        elapsed_ns += crew_run(threads, worker_cycle, workers, sizeof *workers);
        uint64_t resident = report_resident_kib();
        uint64_t *peak = &half_peaks_kib[cycle >= cycles / 2];
        *peak = resident > *peak ? resident : *peak;
    }

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += workers[i].answer;
    }
    printf("resident KiB, first and second half: %" PRIu64 " %" PRIu64 "\n",
           half_peaks_kib[0],
           half_peaks_kib[1]);
    if (half_peaks_kib[1] >
        half_peaks_kib[0] + half_peaks_kib[0] * ALLOWANCE_PERCENT / 100 + ALLOWANCE_KIB) {
        report_wrong("the resident memory grows");
    }
    report_answer(answer, 2 * cycles * threads * (SLOTS + REPLACEMENTS), elapsed_ns);
    return 0;
}
