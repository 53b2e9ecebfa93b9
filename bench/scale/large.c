// large.c -- large blocks, with one page of each touched: by their number, and by their size.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

#define KIB 1024u
#define MIB (1024u * KIB)
#define GIB ((size_t)1024u * MIB)

static void **blocks_of(size_t count, size_t bytes)
{
    void **blocks = report_table(count, sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = scale_block(bytes);
    }
    return blocks;
}

// The first `drawn` places get blocks at random.
static void draw(void **blocks, size_t count, size_t drawn, struct prng *prng)
{
    for (size_t i = 0; i < drawn; i++) {
        const size_t other = i + prng_below(prng, (uint32_t)(count - i));
        void *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
    }
}

// Some of `count` live blocks of just under 2 MiB are freed at random, and as many are allocated again; then all
// are freed, oldest first. `mib`: of addresses.
static void large(size_t mib)
{
    enum { BYTES = 2 * MIB - 4096, FREED = 4096, BATCH_MOST = 512 };
    scale_small_pages();
    const size_t count = mib / 2;
    const size_t batch = count / 2 < BATCH_MOST ? count / 2 : BATCH_MOST;
    const size_t rounds = FREED / batch;
    void **blocks = blocks_of(count, BYTES);
    struct prng prng = prng_seed(1, 0);
    uint64_t free_ns = 0;
    uint64_t malloc_ns = 0;
    for (size_t round = 0; round < rounds; round++) {
        draw(blocks, count, batch, &prng);
        const uint64_t begin = scale_cpu_ns();
        for (size_t i = 0; i < batch; i++) {
            free(blocks[i]);
        }
        const uint64_t middle = scale_cpu_ns();
        for (size_t i = 0; i < batch; i++) {
            blocks[i] = scale_block(BYTES);
        }
        free_ns += middle - begin;
        malloc_ns += scale_cpu_ns() - middle;
    }
    scale_point("large-free", scale_each(free_ns, rounds * batch));
    scale_point("large-malloc", scale_each(malloc_ns, rounds * batch));
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    scale_point("large-free-all", scale_each(scale_cpu_ns() - begin, count));
}

// Of `count` live blocks of half a MiB some are freed at random, and as many are allocated again: if this were done one
// at a time, each would be served by the block that was freed just before.
static void half_mib(size_t count)
{
    enum { BYTES = MIB / 2, PAIRS = 20000, BATCH_MOST = 16 };
    scale_small_pages();
    const size_t batch = count / 2 < BATCH_MOST ? (count + 1) / 2 : BATCH_MOST;
    void **blocks = blocks_of(count, BYTES);
    struct prng prng = prng_seed(2, 0);
    const uint64_t begin = scale_cpu_ns();
    for (size_t done = 0; done < PAIRS; done += batch) {
        draw(blocks, count, batch, &prng);
        for (size_t i = 0; i < batch; i++) {
            free(blocks[i]);
        }
        for (size_t i = 0; i < batch; i++) {
            blocks[i] = scale_block(BYTES);
        }
    }
    scale_point("half-mib-pair", scale_each(scale_cpu_ns() - begin, PAIRS));
}

static void pair(size_t bytes)
{
    const size_t pairs = bytes < MIB ? 200000 : 5000;
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < pairs; i++) {
        free(scale_block(bytes));
    }
    scale_point("pair-by-size", scale_each(scale_cpu_ns() - begin, pairs));
}

// Blocks of `bytes`, fully written, grow to twice that.
static void growth(size_t bytes)
{
    enum { AT_ONCE_MOST = 1000, WRITTEN = 64 * MIB };
    const size_t at_once =
        bytes < 4 * MIB / AT_ONCE_MOST ? AT_ONCE_MOST : (4 * MIB + bytes - 1) / bytes;
    const size_t rounds = (WRITTEN + at_once * bytes - 1) / (at_once * bytes) < 100
                              ? (WRITTEN + at_once * bytes - 1) / (at_once * bytes)
                              : 100;
    void **blocks = report_table(at_once, sizeof *blocks);
    uint64_t spent = 0;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < at_once; i++) {
            blocks[i] = scale_block(bytes);
            memset(blocks[i], 1, bytes);
        }
        const uint64_t begin = scale_cpu_ns();
        for (size_t i = 0; i < at_once; i++) {
            blocks[i] = realloc(blocks[i], 2 * bytes);
        }
        spent += scale_cpu_ns() - begin;
        for (size_t i = 0; i < at_once; i++) {
            free(blocks[i]);
        }
    }
    scale_point("realloc-by-size", scale_each(spent, rounds * at_once));
}

// Limit the process to 32 GiB more addresses, or lift the limit.
static void limit_addresses(bool limited)
{
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    if (file == NULL || fscanf(file, "%zu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0) {
        report_exhausted("the size of the process cannot be read");
    }
    fclose(file);
    limit.rlim_cur = limited ? pages * (size_t)sysconf(_SC_PAGESIZE) + 32 * GIB : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

// Requests of 64 GiB that no addresses are left for; and the cost of blocks of 1 to 5 MiB when there are some again.
static void refused(size_t count)
{
    enum { LIVE = 32, PAIRS = 5000 };
    scale_small_pages();
    limit_addresses(true);
    void *volatile block = NULL;
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < count; i++) {
        block = malloc(64 * GIB);
        if (block != NULL) {
            report_wrong("what is beyond the limit was not refused");
        }
    }
    scale_point("refusal", scale_each(scale_cpu_ns() - begin, count));
    limit_addresses(false);
    void **blocks = blocks_of(LIVE, MIB);
    struct prng prng = prng_seed(3, 0);
    const uint64_t after = scale_cpu_ns();
    for (size_t i = 0; i < PAIRS; i++) {
        void **place = &blocks[prng_below(&prng, LIVE)];
        free(*place);
        *place = scale_block(MIB + prng_below(&prng, 4 * MIB));
    }
    scale_point("pair-after-refusals", scale_each(scale_cpu_ns() - after, PAIRS));
}

const struct scale_subject scale_subjects[] = {
    {"large", large},
    {"half-mib", half_mib},
    {"pair", pair},
    {"growth", growth},
    {"refused", refused},
    {NULL, NULL},
};
