// malloc(0) returns a block of its own every time: not NULL, not another's
// address, and free accepts it. So do the others of the family.
#include "../support/promise.h"

enum { BLOCKS = 1000 };

static int by_address(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)*(void *const *)left;
    uintptr_t b = (uintptr_t)*(void *const *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    ht_start();
    static void *blocks[BLOCKS * 4];
    size_t zero = ht_hide_size(0);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[4 * i] = malloc(zero);
        blocks[4 * i + 1] = calloc(zero, 8);
        blocks[4 * i + 2] = realloc(NULL, zero);
        blocks[4 * i + 3] = aligned_alloc(64, zero);
    }
    qsort(blocks, BLOCKS * 4, sizeof *blocks, by_address);
    HT_CHECK(blocks[0] != NULL, "a request of 0 bytes gave NULL");
    for (size_t i = 1; i < BLOCKS * 4; i++) {
        HT_CHECK(blocks[i] != blocks[i - 1], "%p was given out twice", blocks[i]);
    }
    for (size_t i = 0; i < BLOCKS * 4; i++) {
        free(blocks[i]);
    }
    return 0;
}
