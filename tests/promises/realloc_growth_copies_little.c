// serial
// native only
// A block that grows to 1 GiB in steps of 1 % is moved, not copied, most of the
// way: all the copies together write less than twice its final size. The same holds
// for several that grow in turn, each in the others' way.
//
// Without huge pages each page is resident after one fault, whoever writes to
// it first: the program, once for each page, or a copy into fresh memory.
#include "../support/memory.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static size_t faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
}

static size_t written_since(size_t before)
{
    return (faults() - before) * (size_t)sysconf(_SC_PAGESIZE);
}

static void several_in_turn(void)
{
    enum { BLOCKS = 8 };
    const size_t step = 64 * HT_KIB;
    const size_t final = 48 * HT_MIB;
    unsigned char *blocks[BLOCKS] = {NULL};
    const size_t before = faults();
    for (size_t size = step; size <= final; size += step) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = realloc(blocks[i], size);
            HT_CHECK(blocks[i] != NULL, "realloc to %zu failed", size);
            memset(blocks[i] + size - step, (int)i + 1, step);
        }
    }
    const size_t written = written_since(before);
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < final; at += 512) {
            HT_CHECK(blocks[i][at] == i + 1, "byte %zu of block %zu was lost", at, i);
        }
        free(blocks[i]);
    }
    HT_CHECK(written <= 3 * BLOCKS * final,
             "%zu MiB of pages written for %d blocks of %zu",
             written / HT_MIB,
             BLOCKS,
             final / HT_MIB);
}

int main(void)
{
    ht_start();
    ht_need_memory(3 * HT_GIB);
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        HT_SKIP("huge pages cannot be switched off");
    }
    several_in_turn();
    size_t before = faults();
    size_t size = 4096;
    unsigned char *block = malloc(size);
    HT_CHECK(block != NULL, "malloc(%zu) failed", size);
    memset(block, 1, size);
    while (size < HT_GIB) {
        size_t larger = size + size / 100 + 1;
        block = realloc(block, larger);
        HT_CHECK(block != NULL, "realloc to %zu failed", larger);
        HT_CHECK(block[0] == 1 && block[size - 1] == 1, "realloc to %zu lost the contents", larger);
        memset(block + size, 1, larger - size);
        size = larger;
    }
    size_t written = written_since(before);
    for (size_t i = 0; i < size; i += 512) {
        HT_CHECK(block[i] == 1, "byte %zu was lost on the way", i);
    }
    free(block);
    HT_CHECK(written <= 3 * size,
             "%zu MiB of pages written for a block of %zu",
             written / HT_MIB,
             size / HT_MIB);
    return 0;
}
