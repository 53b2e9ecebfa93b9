// pages: 16384 65536
// valloc's blocks start at a page boundary; pvalloc's also fill whole pages.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size < 5 * HT_MIB; size += size / 3 + 1) {
        unsigned char *block = valloc(size);
        HT_CHECK(block != NULL, "valloc(%zu) failed", size);
        HT_CHECK((uintptr_t)block % page == 0, "valloc(%zu) gave %p", size, (void *)block);
        memset(block, 1, size);
        unsigned char *pages = pvalloc(size);
        size_t whole = (size + page - 1) / page * page;
        HT_CHECK(pages != NULL, "pvalloc(%zu) failed", size);
        HT_CHECK((uintptr_t)pages % page == 0, "pvalloc(%zu) gave %p", size, (void *)pages);
        HT_CHECK(malloc_usable_size(pages) >= whole, "pvalloc(%zu) is less than its pages", size);
        memset(pages, 2, whole);
        free(block);
        free(pages);
    }
    return 0;
}
