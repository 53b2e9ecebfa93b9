// tail_latency.c -- how long does the slowest malloc or free of a small block take?
//
// A mixed run: random slots, mostly blocks of 16 to 1,024 bytes, some up to 256 KiB, and a burst
// that is freed at once from time to time. Only the calls for small blocks are timed, each on its
// own. With `seconds` 0 each thread makes `replacements` of them, otherwise it goes on for that
// long. Prints the percentiles in nanoseconds, the cost of reading the clock left in. Answer:
// the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#if defined(__x86_64__)
#    include <x86intrin.h>
#endif

enum {
    SLOTS = 20000,
    LARGE_SLOTS = 64,
    SMALL_BYTES_MAX = 1024,
    LARGE_BYTES_MAX = 256 << 10,
    BURST_EVERY = 50000,
    BURST_BLOCKS = 2000,
    TIME_CHECK_EVERY = 1024,
    // Histogram: 16 steps to each doubling, so a percentile is right to 6 %.
    STEPS_LOG2 = 4,
    STEPS = 1 << STEPS_LOG2,
    BUCKETS = 64 * STEPS,
};

struct member {
    _Alignas(CREW_APART_BYTES) struct block *slots;
    struct block large[LARGE_SLOTS];
    struct block burst[BURST_BLOCKS];
    uint64_t until_ns; // 0: until the replacements are made
    uint64_t replacements_wanted;
    uint64_t replacements;
    uint64_t answer;
    struct prng prng;
    uint64_t slowest_ticks;
    uint64_t histogram[BUCKETS];
};

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    unsigned processor;
    return __rdtscp(&processor);
#else
    return report_clock_ns();
#endif
}

static unsigned bucket_of(uint64_t ticks)
{
    if (ticks < STEPS) {
        return (unsigned)ticks;
    }
    unsigned log2 = 63 - (unsigned)__builtin_clzll(ticks);
    unsigned step = (unsigned)(ticks >> (log2 - STEPS_LOG2)) & (STEPS - 1);
    return (log2 - STEPS_LOG2 + 1) * STEPS + step;
}

// The smallest number of ticks that falls into the bucket after this one.
static uint64_t bucket_end(unsigned bucket)
{
    if (bucket < STEPS) {
        return bucket + 1;
    }
    unsigned log2 = bucket / STEPS + STEPS_LOG2 - 1;
    return (uint64_t)(STEPS + bucket % STEPS + 1) << (log2 - STEPS_LOG2);
}

static void member_note(struct member *member, uint64_t ticks)
{
    member->histogram[bucket_of(ticks)]++;
    member->slowest_ticks = ticks > member->slowest_ticks ? ticks : member->slowest_ticks;
}

static void small_take(struct member *member, struct block *slot, uint64_t stamp)
{
    slot->size = prng_between(&member->prng, 16, SMALL_BYTES_MAX);
    uint64_t begin = ticks_now();
    slot->bytes = malloc(slot->size);
    member_note(member, ticks_now() - begin);
    block_stamp(block_require(slot->bytes), slot->size, stamp);
}

static void small_give(struct member *member, struct block *slot, uint64_t stamp)
{
    block_verify(slot->bytes, slot->size, stamp);
    member->answer += prng_mix(stamp + slot->size);
    uint64_t begin = ticks_now();
    free(slot->bytes);
    member_note(member, ticks_now() - begin);
}

static void large_replace(struct member *member)
{
    uint32_t victim = prng_below(&member->prng, LARGE_SLOTS);
    struct block *slot = &member->large[victim];
    member->answer += block_give(slot, victim);
    block_take(slot, prng_between(&member->prng, SMALL_BYTES_MAX, LARGE_BYTES_MAX), victim);
}

// Many blocks at once, as when a request or a frame is built and discarded.
static void burst(struct member *member)
{
    for (uint32_t i = 0; i < BURST_BLOCKS; i++) {
        small_take(member, &member->burst[i], i);
    }
    for (uint32_t i = 0; i < BURST_BLOCKS; i++) {
        small_give(member, &member->burst[i], i);
    }
}

static bool member_is_done(const struct member *member)
{
    if (member->until_ns == 0) {
        return member->replacements == member->replacements_wanted;
    }
    return member->replacements % TIME_CHECK_EVERY == 0 && report_clock_ns() >= member->until_ns;
}

static void member_work(void *argument)
{
    struct member *member = argument;
    for (uint32_t i = 0; i < SLOTS; i++) {
        small_take(member, &member->slots[i], i);
    }
    for (uint32_t i = 0; i < LARGE_SLOTS; i++) {
        block_take(&member->large[i], SMALL_BYTES_MAX, i);
    }
    while (!member_is_done(member)) {
        uint32_t victim = prng_below(&member->prng, SLOTS);
        small_give(member, &member->slots[victim], victim);
        small_take(member, &member->slots[victim], victim);
        if (prng_below(&member->prng, 64) == 0) {
            large_replace(member);
        }
        if (++member->replacements % BURST_EVERY == 0) {
            burst(member);
        }
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        small_give(member, &member->slots[i], i);
    }
    for (uint32_t i = 0; i < LARGE_SLOTS; i++) {
        member->answer += block_give(&member->large[i], i);
    }
}

// The percentiles of all members' calls; returns how many calls there were.
static uint64_t percentiles_print(struct member *members, unsigned threads, double ns_per_tick)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
    uint64_t total = 0;
    uint64_t slowest = 0;
    uint64_t *sum = members[0].histogram;
    for (unsigned i = 0; i < threads; i++) {
        for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
            total += members[i].histogram[bucket];
            sum[bucket] += i > 0 ? members[i].histogram[bucket] : 0;
        }
        slowest = members[i].slowest_ticks > slowest ? members[i].slowest_ticks : slowest;
    }
    uint64_t passed = 0;
    unsigned bucket = 0;
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t rank = (uint64_t)ceil((double)total * shares[i]);
        while (bucket < BUCKETS && passed + sum[bucket] < rank) {
            passed += sum[bucket++];
        }
        // A bucket's end can be above the largest measured value.
        double ticks = fmin((double)bucket_end(bucket), (double)slowest);
        printf("p%-8.6g %12.0f ns\n", shares[i] * 100, ticks * ns_per_tick);
    }
    printf("max       %12.0f ns\n", (double)slowest * ns_per_tick);
    return total;
}

int main(int argc, char **argv)
{
    struct args args =
        args_begin(argc, argv, "tail_latency [seconds] [threads] [seed] [replacements]");
    uint64_t seconds = args_number(&args, "seconds", 0, 0, 1000000);
    unsigned threads = (unsigned)args_number(&args, "threads", 1, 1, CREW_THREADS_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    uint64_t replacements = args_number(&args, "replacements", 4000000, 1, UINT64_MAX);
    args_end(&args);

    struct member *members = report_table(threads, sizeof *members);
    uint64_t begin_ns = report_clock_ns();
    uint64_t begin_ticks = ticks_now();
    for (unsigned i = 0; i < threads; i++) {
        members[i].slots = report_table(SLOTS, sizeof(struct block));
        members[i].until_ns = seconds == 0 ? 0 : begin_ns + seconds * 1000000000u;
        members[i].replacements_wanted = replacements;
        members[i].prng = prng_seed(seed, i);
    }
    uint64_t elapsed_ns = crew_run(threads, member_work, members, sizeof *members);
    uint64_t run_ticks = ticks_now() - begin_ticks;
    double ns_per_tick = (double)(report_clock_ns() - begin_ns) / (double)run_ticks;

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += members[i].answer;
    }
    uint64_t calls = percentiles_print(members, threads, ns_per_tick);
    if (seconds > 0) {
        report_timed(calls, elapsed_ns);
    } else {
        report_answer(answer, calls, elapsed_ns);
    }
    return 0;
}
