// noise.h -- the same random numbers in each run, for tests of decisions by noisy costs.
#ifndef HAK_TESTS_NOISE_H
#define HAK_TESTS_NOISE_H

#include <stdint.h>

static uint64_t noise_state = 1;

// Uniform from 0 to 1.
static inline double chance(void)
{
    noise_state = noise_state * 6364136223846793005U + 1442695040888963407U;
    return (double)(noise_state >> 11) / (double)(UINT64_C(1) << 53);
}

// Uniform from -1 to 1.
static inline double noise(void)
{
    return 2 * chance() - 1;
}

#endif
