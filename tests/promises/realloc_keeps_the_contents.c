// not tagged: takes longest under qemu; stress/realloc_storm does the same
// env: HAKMEM_DIRTY_BYTES=2M
//
// realloc keeps the bytes that fit, whichever size classes it crosses, when it grows
// or shrinks a block, and a shrunk block gives its pages back.
#include "../support/memory.h"

// A block's repeated content: byte i is i * 31 / 8 modulo 256.
enum { PERIOD = 2048 };
static unsigned char contents[PERIOD];

static size_t piece(size_t from, size_t to)
{
    size_t left = PERIOD - from % PERIOD;
    return left < to - from ? left : to - from;
}

static unsigned char *resize(unsigned char *block, size_t from, size_t to)
{
    block = realloc(block, to);
    HT_CHECK(block != NULL, "realloc from %zu to %zu failed", from, to);
    size_t kept = from < to ? from : to;
    for (size_t i = 0; i < kept; i += piece(i, kept)) {
        HT_CHECK(memcmp(block + i, contents + i % PERIOD, piece(i, kept)) == 0,
                 "realloc from %zu to %zu: a byte from %zu on",
                 from,
                 to,
                 i);
    }
    for (size_t i = kept; i < to; i += piece(i, to)) {
        memcpy(block + i, contents + i % PERIOD, piece(i, to));
    }
    return block;
}

// Of a long block that moves, pages of zeros are not written: one byte in each is nonzero, at another place in each.
static void keep_bytes_that_lie_alone(void)
{
    enum { PAGE = 4096, BYTES = 3 << 20, LONGER = 9 << 20 };
    unsigned char *block = calloc(1, BYTES);
    HT_CHECK(block != NULL, "calloc failed");
    for (size_t page = 0; page < BYTES / PAGE; page++) {
        block[page * PAGE + page * 37 % PAGE] = 1;
    }
    void *neighbour = malloc(BYTES);
    block = realloc(block, LONGER);
    HT_CHECK(block != NULL, "realloc to %d failed", (int)LONGER);
    for (size_t page = 0; page < BYTES / PAGE; page++) {
        HT_CHECK(block[page * PAGE + page * 37 % PAGE] == 1, "page %zu has lost its byte", page);
    }
    free(neighbour);
    free(block);
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < PERIOD; i++) {
        contents[i] = (unsigned char)(i * 31 >> 3);
    }
    static const size_t sizes[] = {
        1,    16,    17,    64,    100,    128,    129,     500,     1024,    1025,    4000,
        9000, 32768, 32769, 65536, 100000, 300000, 1000000, 2097152, 2097153, 5000000, 17000000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = 0; j < SIZES; j++) {
            unsigned char *block = resize(NULL, 0, sizes[i]);
            void *neighbour = malloc(sizes[i]);
            block = resize(block, sizes[i], sizes[j]);
            block = resize(block, sizes[j], sizes[i]);
            free(neighbour);
            free(block);
        }
    }
    keep_bytes_that_lie_alone();
    struct ht_random random = {3};
    unsigned char *block = resize(NULL, 0, 1);
    size_t size = 1;
    for (int i = 0; i < 3000; i++) {
        size_t to = 1 + ht_random_size(&random, 200000);
        block = resize(block, size, to);
        size = to;
    }
    free(block);
    // With dirty_bytes set, a program does not keep memory for its swings.
    long before = ht_rss_kib();
    block = resize(NULL, 0, 64 * HT_MIB);
    block = resize(block, 64 * HT_MIB, 100);
    ht_expect_rss(ht_fallen_kib(before, 100), 2000, "64 MiB shrunk to 100 bytes");
    free(block);
    return 0;
}
