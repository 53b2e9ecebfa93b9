// pages: 16384 65536
// not tagged: takes longest under qemu, and tags make no difference
// aligned_alloc and memalign accept any power of two up to 4 MiB and beyond, for
// any size, a multiple of the alignment or not. The blocks do not overlap, have the
// promised size, and realloc, malloc_usable_size and free accept them.
#include "../support/memory.h"

enum { BLOCKS = 24 };

struct block {
    unsigned char *bytes;
    size_t size;
};

static void check_pattern(const struct block *block, unsigned char fill, size_t size)
{
    size_t other = ht_first_other(block->bytes, size, fill);
    HT_CHECK(other == size, "byte %zu of %zu is another block's", other, block->size);
}

static void check_alignment(size_t alignment, struct ht_random *random)
{
    struct block blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = ht_random_size(random, alignment < 65536 ? 100000 : 2 * alignment);
        void *bytes = i % 2 ? memalign(alignment, size) : aligned_alloc(alignment, size);
        HT_CHECK(bytes != NULL, "aligned_alloc(%zu, %zu) failed", alignment, size);
        HT_CHECK((uintptr_t)bytes % alignment == 0, "%p: not aligned to %zu", bytes, alignment);
        HT_CHECK(malloc_usable_size(bytes) >= size,
                 "aligned_alloc(%zu, %zu) is too small",
                 alignment,
                 size);
        blocks[i] = (struct block){bytes, size};
        memset(bytes, (int)i + 1, size);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[i];
        check_pattern(block, (unsigned char)(i + 1), block->size);
        if (i % 3 == 0) {
            size_t size = i % 2 ? block->size / 2 + 1 : block->size * 2 + 1;
            size_t kept = size < block->size ? size : block->size;
            block->bytes = realloc(block->bytes, size);
            HT_CHECK(block->bytes != NULL, "realloc of an aligned block failed");
            check_pattern(block, (unsigned char)(i + 1), kept);
            memset(block->bytes, (int)i + 1, size);
            block->size = size;
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        check_pattern(&blocks[i], (unsigned char)(i + 1), blocks[i].size);
        free(blocks[i].bytes);
    }
}

int main(void)
{
    ht_start();
    struct ht_random random = {20};
    for (size_t alignment = 1; alignment <= 16 * HT_MIB; alignment *= 2) {
        for (int round = 0; round < 3; round++) {
            check_alignment(alignment, &random);
        }
    }
    // Sparse: a large alignment costs address space, not memory.
    long before = ht_rss_kib();
    void *blocks[100];
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = aligned_alloc(4 * HT_MIB, 100);
        HT_CHECK(blocks[i] != NULL, "aligned_alloc(4 MiB, 100) failed at %zu", i);
        memset(blocks[i], 1, 100);
    }
    long grown = ht_rss_kib() - before;
    HT_CHECK(grown < 16 * 1024, "100 sparse aligned blocks made %ld KiB resident", grown);
    for (size_t i = 0; i < 100; i++) {
        free(blocks[i]);
    }
    return 0;
}
