// serial
// native only
// A block that grows to 1 GiB in steps of 1 % is moved, not copied, most of the
// way: all the copies together write less than twice its final size.
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

int main(void)
{
    ht_start();
    ht_need_memory(3 * HT_GIB);
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        HT_SKIP("huge pages cannot be switched off");
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
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
    size_t written = (faults() - before) * page;
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
