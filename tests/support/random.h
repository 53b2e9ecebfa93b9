// random.h -- small repeatable random numbers (splitmix64), one state for each thread.
#ifndef HAK_TESTS_SUPPORT_RANDOM_H
#define HAK_TESTS_SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct ht_random {
    uint64_t state;
};

static inline uint64_t ht_random_next(struct ht_random *random)
{
    // The three constants are splitmix64's published ones.
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A number below `limit`, which is not 0.
static inline size_t ht_random_below(struct ht_random *random, size_t limit)
{
    return (size_t)(ht_random_next(random) % limit);
}

// A size with all magnitudes equally frequent: as many below 64 bytes as above max / 2.
static inline size_t ht_random_size(struct ht_random *random, size_t max)
{
    unsigned bits = 1;
    while (((size_t)1 << bits) < max) {
        bits++;
    }
    size_t below = (size_t)1 << (1 + ht_random_below(random, bits));
    size_t size = ht_random_below(random, below);
    return size <= max ? size : max;
}

#endif
