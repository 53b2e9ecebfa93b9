// small.c -- small blocks against the size of the heap, all of it written.
#include <stdlib.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

enum { LEAST = 16 };

struct heap {
    size_t count;
    uint32_t most; // bytes of a block
    void **blocks;
    struct prng prng;
};

static void *any_block(struct heap *heap)
{
    return scale_block(prng_between(&heap->prng, LEAST, heap->most));
}

static struct heap heap_of(size_t mib, uint32_t most)
{
    const size_t count = (mib << 20) / ((LEAST + most) / 2);
    struct heap heap = {count, most, report_table(count, sizeof(void *)), prng_seed(4, 0)};
    for (size_t i = 0; i < count; i++) {
        heap.blocks[i] = any_block(&heap);
    }
    return heap;
}

static void replace(size_t mib)
{
    enum { PAIRS = 1000000 };
    struct heap heap = heap_of(mib, 496);
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < PAIRS; i++) {
        void **place = &heap.blocks[prng_below(&heap.prng, (uint32_t)heap.count)];
        free(*place);
        *place = any_block(&heap);
    }
    scale_point("replace", scale_each(scale_cpu_ns() - begin, PAIRS));
}

static double share_of(const struct heap *heap, size_t mib)
{
    const double table = (double)(heap->count * sizeof(void *)) / 1024;
    return 100 * ((double)report_resident_kib() - table) / (double)(mib << 10);
}

// Nine of ten are freed at random. Resident memory as a share of what was asked for.
static void holes(size_t mib)
{
    struct heap heap = heap_of(mib, 2048);
    for (size_t i = 0; i < heap.count; i++) {
        if (prng_below(&heap.prng, 10) != 0) {
            free(heap.blocks[i]);
        }
    }
    scale_point("holes-at-once", share_of(&heap, mib));
    scale_sleep_ms(3000);
    scale_point("holes-after-3-s", share_of(&heap, mib));
}

const struct scale_subject scale_subjects[] = {
    {"replace", replace},
    {"holes", holes},
    {NULL, NULL},
};
