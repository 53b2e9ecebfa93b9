// pages: 16384 65536
// not tagged: takes longest under qemu, and tags make no difference
// calloc's bytes are zero also if the block was used before, whatever
// its size and whichever way it came back.
#include "../support/promise.h"

enum { BLOCKS = 40 };

static void soil(size_t size)
{
    void *blocks[BLOCKS];
    size_t count = size > HT_MIB ? 3 : BLOCKS;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
        memset(blocks[i], 0xa5, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        free(ht_hide(blocks[i]));
    }
}

static void check_zero(size_t size)
{
    unsigned char *blocks[BLOCKS];
    size_t count = size > HT_MIB ? 3 : BLOCKS;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = calloc(1, size);
        HT_CHECK(blocks[i] != NULL, "calloc(1, %zu) failed", size);
        size_t other = ht_first_other(blocks[i], size, 0);
        HT_CHECK(other == size, "calloc(1, %zu): byte %zu is %d", size, other, blocks[i][other]);
        memset(blocks[i], 0xa5, size);
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

// One nonzero byte, somewhere in a page that is zeros otherwise.
static void soil_one_byte(size_t size, size_t at)
{
    unsigned char *block = calloc(1, size);
    HT_CHECK(block != NULL, "calloc(1, %zu) failed", size);
    block[at] = 1;
    free(ht_hide(block));
    block = calloc(1, size);
    HT_CHECK(block != NULL && block[at] == 0, "calloc(1, %zu): byte %zu is left", size, at);
    free(block);
}

int main(void)
{
    ht_start();
    for (size_t size = 1; size < 24 * HT_MIB; size += size / 5 + 1) {
        soil(size);
        check_zero(size);
        check_zero(size - size / 16);
    }
    for (size_t at = 0; at < 4096; at += 5) {
        soil_one_byte(HT_MIB / 2 + 37, at % 8 == 7 ? HT_MIB / 2 + at % 37 : 8192 + at);
    }
    return 0;
}
