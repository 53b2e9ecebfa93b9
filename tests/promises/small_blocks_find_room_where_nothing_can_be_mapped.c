// its names for all
// native only
// not secure: what describes its slabs lies between guards, in mappings of its own
// If the only free memory (RLIMIT_AS) is units between large blocks, all of them serve small requests: the descriptors of their
// slabs need no other memory. Nor do heaps.
#include "../support/api.h"

#include "../support/addresses.h"

enum {
    ALONE = 40,
    HEAPS = 20,
    LARGES_MOST = 4000,
    STAYS = 64,
    LARGE_BYTES = 60000,
    SMALL_BYTES = 16
};

static size_t take_all(size_t bytes)
{
    size_t count = 0;
    while (ht_hide(malloc(bytes)) != NULL) {
        count++;
    }
    return count * bytes;
}

int main(void)
{
    static void *larges[LARGES_MOST];
    ht_start();
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    ht_limit_addresses(64 * HT_MIB);
    unsigned count = 0;
    while (count < LARGES_MOST && (larges[count] = malloc(LARGE_BYTES)) != NULL) {
        count++;
    }
    HT_CHECK(count > 500 && count < LARGES_MOST, "%u large blocks were taken", count);
    for (unsigned i = 0; i < ALONE; i++) { // one free unit is enough, with its descriptor
        free(larges[--count]);
        HT_CHECK(take_all(SMALL_BYTES) != 0, "unit %u that was free alone served nobody", i);
    }
    size_t free_bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i % STAYS != 0) { // about one in each superslab, so that none can be unmapped
            free(larges[i]);
            free_bytes += LARGE_BYTES;
        }
    }
    for (unsigned i = 0; i < HEAPS; i++) {
        struct hak_heap *heap = api_hak_heap_create();
        HT_CHECK(heap != NULL, "heap %u was refused", i);
        HT_CHECK(ht_hide(api_hak_heap_malloc(heap, SMALL_BYTES)) != NULL, "heap %u has nothing", i);
    }
    const size_t got = take_all(SMALL_BYTES);
    HT_CHECK(got >= free_bytes / 10 * 9, "%zu bytes were had of %zu", got, free_bytes);
    const size_t rest = take_all(LARGE_BYTES);
    HT_CHECK(rest == 0, "%zu bytes were free", rest);
    return 0;
}
