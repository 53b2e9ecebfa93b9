// pages: 65536
// not tagged: takes longest under qemu, and tags make no difference
// malloc_usable_size is at least the requested size, all of it can be written,
// and above 128 bytes no block is more than an eighth larger than its request;
// except that blocks above 32 KiB are whole pages.
#include "../support/promise.h"

static size_t most_usable(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole_pages = (size + page - 1) / page * page;
    size_t eighth_more = size + size / 8;
    return size > 32 * HT_KIB && whole_pages > eighth_more ? whole_pages : eighth_more;
}

static unsigned char *check(size_t size)
{
    unsigned char *block = malloc(size);
    HT_CHECK(block != NULL, "malloc(%zu) failed", size);
    size_t usable = malloc_usable_size(block);
    HT_CHECK(usable >= size, "malloc(%zu): %zu usable", size, usable);
    if (size > 128) {
        HT_CHECK(
            usable <= most_usable(size), "malloc(%zu): %zu usable, too much waste", size, usable);
    } else {
        HT_CHECK(usable <= size + 16, "malloc(%zu): %zu usable, too much waste", size, usable);
    }
    return block;
}

int main(void)
{
    ht_start();
    enum { SMALL = 40000 };
    static unsigned char *blocks[SMALL];
    for (size_t size = 0; size < SMALL; size++) {
        blocks[size] = check(size);
        memset(blocks[size], (int)(size % 251), malloc_usable_size(blocks[size]));
    }
    for (size_t size = 0; size < SMALL; size++) {
        size_t usable = malloc_usable_size(blocks[size]);
        size_t other = ht_first_other(blocks[size], usable, (unsigned char)(size % 251));
        HT_CHECK(other == usable, "byte %zu of %zu usable was not its own", other, usable);
        free(blocks[size]);
    }
    for (size_t size = SMALL; size < 64 * HT_MIB; size += size / 50 + 1) {
        unsigned char *block = check(size);
        size_t usable = malloc_usable_size(block);
        block[0] = 1;
        block[usable - 1] = 1;
        free(block);
    }
    return 0;
}
