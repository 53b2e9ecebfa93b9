// env: HAKMEM_LIMIT_HARD=1000M HAKMEM_DIRTY_BYTES=1G HAKMEM_PURGE_START_BYTES=1G HAKMEM_DECAY_MS=600000
// with features
// A block with room behind it grows in place as long as the heap stays within limit_hard, whatever waits to be purged: a copy
// would not fit beside it. If the limit does not allow the new size at all, realloc is refused, and the block stays as it was.
#include "../support/memory.h"

enum { SMALL_BYTES = 30000, SMALL_BLOCKS = 2100 };

static char *blocks[SMALL_BLOCKS];

static void take_small(void)
{
    for (size_t i = 0; i < SMALL_BLOCKS; i++) {
        blocks[i] = malloc(SMALL_BYTES);
        HT_CHECK(blocks[i] != NULL, "no small block");
        memset(blocks[i], 1, SMALL_BYTES);
    }
}

// Then 60 MiB are free, and wait.
static void free_small(void)
{
    for (size_t i = 0; i < SMALL_BLOCKS; i++) {
        free(blocks[i]);
    }
}

// With as many other bytes in use as leave room for `grown` and some 20 MiB.
static void grow(size_t bytes, size_t grown)
{
    char *others = malloc(980 * HT_MIB - grown);
    HT_CHECK(others != NULL, "no block beside it");
    take_small();
    char *block = malloc(bytes);
    HT_CHECK(block != NULL, "no block of %zu", bytes);
    block[0] = 1;
    block[bytes - 1] = 2;
    free_small();
    errno = 0;
    char *same = realloc(block, grown);
    HT_CHECK(same != NULL, "%zu bytes to %zu were refused", bytes, grown);
    HT_CHECK(same[0] == 1 && same[bytes - 1] == 2, "its content was lost");
    HT_CHECK(errno == 0, "errno is %d", errno);
    HT_CHECK(realloc(same, grown + 40 * HT_MIB) == NULL && errno == ENOMEM,
             "a realloc beyond the limit: errno is %d",
             errno);
    HT_CHECK(same[0] == 1 && same[bytes - 1] == 2, "a refused realloc lost its content");
    free(same);
    free(others);
}

int main(void)
{
    ht_start();
    grow(48 * HT_MIB, 100 * HT_MIB);
    grow(600 * HT_MIB, 680 * HT_MIB);
    return 0;
}
