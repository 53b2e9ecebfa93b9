// prng.h -- the random numbers of the workloads.
//
// Owns      nothing; the state is the caller's.
// Threads   one state per thread.
// Fails     never.
//
// SplitMix64: an add and two multiplications, so that drawing numbers is a small part of what
// is timed, and the same seed gives the same workload on every machine.
#ifndef WORKLOADS_PRNG_H
#define WORKLOADS_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t state;
};

// Spread the bits of `value`, so that sums of mixed values notice every difference.
static inline uint64_t prng_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

// Streams of one seed are independent: give each thread its own.
static inline struct prng prng_seed(uint64_t seed, uint64_t stream)
{
    return (struct prng){.state = prng_mix(prng_mix(seed) + stream)};
}

static inline uint64_t prng_next(struct prng *prng)
{
    prng->state += 0x9e3779b97f4a7c15u; // 2^64 / golden ratio, the generator's increment
    return prng_mix(prng->state);
}

// A number in 0 … bound - 1, without a division. `bound` must not be 0.
static inline uint32_t prng_below(struct prng *prng, uint32_t bound)
{
    return (uint32_t)(((prng_next(prng) >> 32) * bound) >> 32);
}

// A number in low … high, both included.
static inline uint32_t prng_between(struct prng *prng, uint32_t low, uint32_t high)
{
    return low + prng_below(prng, high - low + 1);
}

#endif
