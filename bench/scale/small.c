// small.c -- small blocks against the size of the heap, all of it written.
#include <stdlib.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

enum { LEAST = 16, MOST = 496, MEAN = (LEAST + MOST) / 2 };

struct heap {
    size_t count;
    void **blocks;
    struct prng prng;
};

static void *any_block(struct heap *heap)
{
    return scale_block(prng_between(&heap->prng, LEAST, MOST));
}

static struct heap heap_of(size_t mib)
{
    const size_t count = (mib << 20) / MEAN;
    struct heap heap = {count, report_table(count, sizeof(void *)), prng_seed(4, 0)};
    for (size_t i = 0; i < count; i++) {
        heap.blocks[i] = any_block(&heap);
    }
    return heap;
}

static void replace(size_t mib)
{
    enum { PAIRS = 1000000 };
    struct heap heap = heap_of(mib);
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < PAIRS; i++) {
        void **place = &heap.blocks[prng_below(&heap.prng, (uint32_t)heap.count)];
        free(*place);
        *place = any_block(&heap);
    }
    scale_point("replace", scale_each(scale_cpu_ns() - begin, PAIRS));
}

// Nine of ten are freed at random. What is resident beyond what was so before the heap was there, in MiB.
static void holes(size_t mib)
{
    struct heap heap = heap_of(mib);
    for (size_t i = 0; i < heap.count; i++) {
        if (prng_below(&heap.prng, 10) != 0) {
            free(heap.blocks[i]);
        }
    }
    const double table = (double)(heap.count * sizeof(void *)) / (1 << 20);
    scale_point("holes-at-once", (double)report_resident_kib() / 1024 - table);
    scale_sleep_ms(3000);
    scale_point("holes-after-3-s", (double)report_resident_kib() / 1024 - table);
}

const struct scale_subject scale_subjects[] = {
    {"replace", replace},
    {"holes", holes},
    {NULL, NULL},
};
