// trim.c -- malloc_trim and mallopt: what a program may ask of the heap.
#include <malloc.h>

#include "base/options.h"
#include "cache/dying.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "front/override.h"
#include "hakmem/hakmem.h"

size_t hak_trim(void)
{
    return hak_start_is_done() && !hak_is_dying() ? hak_sweep_everything() : 0;
}

#ifndef HAK_NO_OVERRIDE

// As in the C library: 1 when something was given back. `pad` bytes may stay; none do.
static int trim(size_t pad)
{
    (void)pad;
    return hak_trim() > 0;
}

// 1: accepted. What a program asks of the C library's algorithm has no meaning here; the two
// that limit what waits for reuse have.
static int option(int parameter, int value)
{
    if (value >= 0 && parameter == M_TRIM_THRESHOLD) {
        return hak_option_set("purge_start_bytes", (uint64_t)value);
    }
    return parameter == M_MMAP_THRESHOLD || parameter == M_MMAP_MAX || parameter == M_TOP_PAD ||
           parameter == M_ARENA_MAX || parameter == M_ARENA_TEST || parameter == M_MXFAST ||
           parameter == M_CHECK_ACTION || parameter == M_PERTURB || parameter == M_TRIM_THRESHOLD;
}

HAK_ALSO(int, malloc_trim, (size_t), trim);
HAK_ALSO(int, mallopt, (int, int), option);

#endif
