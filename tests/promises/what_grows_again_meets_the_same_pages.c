// native only
// env: HAKMEM_DIRTY_BYTES=64M
// not secure: each large block has pages of its own there
// A buffer that has to move before it can grow is placed at one of few addresses, wherever the first gap is:
// a buffer that is written only here and there does not touch other pages each time.
#include "../support/memory.h"

#include <sys/prctl.h>
#include <sys/resource.h>

enum { ROUNDS = 64, FILLERS = 16, FILLER_BYTES = 60000 };
#define FIRST_BYTES (300 * HT_KIB)
#define LAST_BYTES  (16 * HT_MIB)

static size_t faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
}

static unsigned char *take(size_t bytes)
{
    unsigned char *block = malloc(bytes);
    HT_CHECK(block != NULL, "malloc(%zu) failed", bytes);
    return block;
}

// Returns how often it wrote to the end: the most pages that this touches.
static size_t grow_behind(size_t fillers)
{
    void *filler[FILLERS];
    size_t writes = 0;
    for (size_t i = 0; i < fillers; i++) {
        filler[i] = take(FILLER_BYTES);
    }
    size_t size = FIRST_BYTES;
    unsigned char *block = take(size);
    void *in_the_way = take(FILLER_BYTES);
    while (size < LAST_BYTES) {
        size += size / 100;
        block = realloc(block, size);
        HT_CHECK(block != NULL, "realloc to %zu failed", size);
        block[size - 1] = 1;
        writes++;
    }
    free(in_the_way);
    free(block);
    while (fillers > 0) {
        free(filler[--fillers]);
    }
    return writes;
}

int main(void)
{
    ht_start();
    ht_need_memory(HT_GIB);
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        HT_SKIP("huge pages cannot be switched off");
    }
    size_t before = faults();
    size_t writes = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        writes = grow_behind(1 + round * 7 % FILLERS);
    }
    size_t touched = faults() - before;
    HT_CHECK(touched < 5 * writes, "%zu pages touched by %zu writes a round", touched, writes);
    return 0;
}
