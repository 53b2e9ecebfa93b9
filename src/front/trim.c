// trim.c -- malloc_trim and mallopt: what a program may ask of the heap.

#include "base/atomic.h"
#include "base/bits.h"
#include "cache/nested.h"
#include "cache/sweep.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "slab/ranges.h"

size_t hak_trim(void)
{
    return hak_nested_may_wait() ? hak_sweep_everything() : 0;
}

#ifndef HAK_NO_OVERRIDE

// The parameters, by their numbers in malloc.h, which not every C library has.
enum {
    // between these two: ARENA_TEST, CHECK_ACTION, MMAP_MAX, MMAP_THRESHOLD, TOP_PAD
    ARENA_MAX = -8,
    PERTURB = -6,
    TRIM_THRESHOLD = -1,
    MXFAST = 1,
};

// As in the C library: 1 when something was given back. `pad` bytes may stay; none do.
static int trim(size_t pad)
{
    (void)pad;
    return hak_trim() > 0;
}

// Less may not wait before it is purged at once: that would cost each large free a system call.
#    define WAITS_LEAST HAK_MIB(2)

// A negative threshold is the C library's -1: free memory stays. Otherwise up to `threshold` bytes may wait: one option says from
// where on the sweeper purges what is old, another beyond what memory is purged at once. The policy from before -1 holds again.
static bool set_threshold(int threshold)
{
    static _Atomic(uint64_t) before; // HAK_FREE_NOW at first
    const enum hak_free_policy policy = hak_ranges_policy();
    if (threshold < 0) {
        hak_store_relaxed(&before, policy != HAK_FREE_KEEP ? policy : hak_load_relaxed(&before));
        return hak_option_set("free_policy", HAK_FREE_KEEP);
    }
    const uint64_t bytes = (uint64_t)threshold;
    return (policy != HAK_FREE_KEEP || hak_option_set("free_policy", hak_load_relaxed(&before))) &&
           hak_option_set("purge_start_bytes", bytes) &&
           hak_option_set("dirty_bytes", bytes > WAITS_LEAST ? bytes : WAITS_LEAST);
}

// 1: accepted. Most parameters are about the C library's algorithm, have no meaning here, and leave nothing for a program to rely on.
// But one that asks for M_PERTURB relies on blocks being filled, which is an option of the start here (zero_on_free).
static int option(int parameter, int value)
{
    if (parameter == TRIM_THRESHOLD) {
        return set_threshold(value);
    }
    if (parameter == PERTURB) {
        return value == 0;
    }
    return (parameter >= ARENA_MAX && parameter < TRIM_THRESHOLD) || parameter == MXFAST;
}

HAK_ALSO(int, malloc_trim, (size_t), trim);
HAK_ALSO(int, mallopt, (int, int), option);

#endif
