// native only
// Blocks of which only a small part is written, such as those of sparse arrays, are served as long as there are
// addresses: 3 TiB here. They leave room for small blocks, and for aligned ones.
#include "../support/memory.h"

#include <malloc.h>

enum { BLOCKS = 400, SMALL = 100000 };
#define BYTES ((size_t)8 << 30)

static char *blocks[BLOCKS];

static void check(size_t i)
{
    HT_CHECK(blocks[i][0] == (char)(i + 1) && blocks[i][BYTES - 1] == (char)(i + 2),
             "block %zu has other content",
             i);
    HT_CHECK(blocks[i][BYTES / 2] == 0, "block %zu is not zeros", i);
    HT_CHECK(malloc_usable_size(blocks[i]) >= BYTES,
             "block %zu has %zu bytes",
             i,
             malloc_usable_size(blocks[i]));
}

int main(void)
{
    ht_start();
    void *room = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        HT_SKIP("no mapping of 8 GiB");
    }
    munmap(room, BYTES);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = calloc(1, BYTES);
        HT_CHECK(blocks[i] != NULL, "no more than %zu blocks of 8 GiB", i);
        blocks[i][0] = (char)(i + 1);
        blocks[i][BYTES - 1] = (char)(i + 2);
    }
    static void *small[SMALL];
    ht_fill(small, SMALL, 1000);
    for (size_t alignment = HT_MIB; alignment <= 1024 * HT_MIB; alignment *= 2) {
        char *aligned = aligned_alloc(alignment, 5 * HT_MIB);
        HT_CHECK(aligned != NULL && (uintptr_t)aligned % alignment == 0,
                 "no block at a multiple of %zu",
                 alignment);
        aligned[0] = 1;
        aligned[5 * HT_MIB - 1] = 1;
        free(aligned);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        check(i);
        free(blocks[i]);
    }
    ht_free_all(small, SMALL);
    return 0;
}
