// serial
// native only
// static too
// After malloc_trim(0) a page stays only if it has a block in use: nine of ten blocks, chosen at random, were freed one
// after the other, so that each slab was swept many times before.
#include "../support/peak.h"

enum { SIZE = 1000, SPARE_KIB = 4096 };

static int by_address(const void *a, const void *b)
{
    const uintptr_t left = *(const uintptr_t *)a;
    const uintptr_t right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

static size_t pages_under(void **blocks, size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    qsort(blocks, count, sizeof *blocks, by_address);
    size_t pages = 0;
    uintptr_t next = 0; // the first page that was not counted
    for (size_t i = 0; i < count; i++) {
        const uintptr_t first = (uintptr_t)blocks[i] / page;
        const uintptr_t last = ((uintptr_t)blocks[i] + SIZE - 1) / page;
        const uintptr_t from = first > next ? first : next;
        pages += last + 1 > from ? last + 1 - from : 0;
        next = last + 1 > next ? last + 1 : next;
    }
    return pages;
}

int main(void)
{
    ht_start();
    const size_t count = 64 * HT_MIB / SIZE;
    void **blocks = ht_map(count * sizeof *blocks);
    const long baseline = ht_rss_kib();
    ht_fill(blocks, count, SIZE);
    ht_shuffle(blocks, count, 1);
    const size_t kept = count / 10;
    ht_free_all(blocks + kept, count - kept);
    malloc_trim(0);
    const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
    const long pinned_kib = (long)pages_under(blocks, kept) * page_kib;
    ht_expect_rss(baseline + pinned_kib + SPARE_KIB + ht_held_back_kib(), 0, "scattered blocks");
    ht_free_all(blocks, kept);
    return 0;
}
