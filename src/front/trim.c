// trim.c -- malloc_trim and mallopt: what a program may ask of the heap.

#include "cache/dying.h"
#include "cache/sweep.h"
#include "front/override.h"
#include "hakmem/hakmem.h"

size_t hak_trim(void)
{
    return !hak_dying_now() ? hak_sweep_everything() : 0;
}

#ifndef HAK_NO_OVERRIDE

// The parameters, by their numbers in malloc.h, which not every C library has.
enum {
    // between these two: ARENA_TEST, PERTURB, CHECK_ACTION, MMAP_MAX, MMAP_THRESHOLD, TOP_PAD
    ARENA_MAX = -8,
    TRIM_THRESHOLD = -1,
    MXFAST = 1,
};

// As in the C library: 1 when something was given back. `pad` bytes may stay; none do.
static int trim(size_t pad)
{
    (void)pad;
    return hak_trim() > 0;
}

// 1: accepted. Most parameters are about the C library's algorithm and have no meaning here. The one
// that limits the memory that waits for reuse has.
static int option(int parameter, int value)
{
    if (value >= 0 && parameter == TRIM_THRESHOLD) {
        return hak_option_set("purge_start_bytes", (uint64_t)value);
    }
    return (parameter >= ARENA_MAX && parameter <= TRIM_THRESHOLD) || parameter == MXFAST;
}

HAK_ALSO(int, malloc_trim, (size_t), trim);
HAK_ALSO(int, mallopt, (int, int), option);

#endif
