// small.c -- small blocks by the size of the heap, all of it written.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

enum { LEAST = 16 };

struct heap {
    size_t count;
    uint32_t most; // of the largest block
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

// A million blocks; returns the cost of each.
static double replace_some(struct heap *heap)
{
    enum { PAIRS = 1000000 };
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < PAIRS; i++) {
        void **place = &heap->blocks[prng_below(&heap->prng, (uint32_t)heap->count)];
        free(*place);
        *place = any_block(heap);
    }
    return scale_each(scale_cpu_ns() - begin, PAIRS);
}

static void replace(size_t mib)
{
    struct heap heap = heap_of(mib, 496);
    scale_point("replace", replace_some(&heap));
}

static double share_of(const struct heap *heap, size_t mib)
{
    const double table = (double)(heap->count * sizeof(void *)) / 1024;
    return 100 * ((double)report_resident_kib() - table) / (double)(mib << 10);
}

// Nine of ten are freed at random. Resident memory as a share of the requested bytes.
static void holes(size_t mib)
{
    const uint64_t begin = scale_cpu_ns();
    struct heap heap = heap_of(mib, 2048);
    scale_point("holes-built", scale_each(scale_cpu_ns() - begin, heap.count));
    for (size_t i = 0; i < heap.count; i++) {
        if (prng_below(&heap.prng, 10) != 0) {
            free(heap.blocks[i]);
            heap.blocks[i] = NULL;
        }
    }
    scale_point("holes-at-once", share_of(&heap, mib));
    scale_sleep_ms(3000);
    scale_point("holes-after-3-s", share_of(&heap, mib));
    scale_point("holes-filled", replace_some(&heap));
}

// One block in ten, in an order unrelated to their addresses. The table is not written to, as it is shared, too.
static void free_tenth(struct heap *heap)
{
    enum { PRIME = 1000003 };
    const size_t tenth = heap->count / 10;
    for (size_t i = 0; i < tenth; i++) {
        free(heap->blocks[i * PRIME % tenth * 10]);
    }
}

// A worker's part of a request: it allocates and frees blocks of its own.
static void work(struct heap *heap)
{
    enum { LIVE = 256, PAIRS = 10000 };
    void *own[LIVE] = {NULL};
    for (size_t i = 0; i < PAIRS; i++) {
        free(own[i % LIVE]);
        own[i % LIVE] = any_block(heap);
    }
}

// The private memory of a child after `act`: copied pages, and new ones.
static void in_child(struct heap *heap, const char *operation, void (*act)(struct heap *))
{
    const pid_t pid = fork();
    if (pid == 0) {
        const uint64_t before = report_private_kib();
        act(heap);
        scale_point(operation, (double)(report_private_kib() - before));
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
        report_exhausted("fork failed");
    }
}

static void fork_child(size_t mib)
{
    struct heap heap = heap_of(mib, 2048);
    in_child(&heap, "child-frees", free_tenth);
    in_child(&heap, "child-works", work);
}

const struct scale_subject scale_subjects[] = {
    {"replace", replace},
    {"holes", holes},
    {"fork-child", fork_child},
    {NULL, NULL},
};
