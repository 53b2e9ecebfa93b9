// its names for all
// native only
// If the only free memory is gaps of one unit (64 KiB), blocks of every small size are still served: also those whose slabs are
// longer than that. They may be freed with their size, and end with their heap.
#include "../support/api.h"

#include "../support/addresses.h"

enum { GAPS_MOST = 2000, LEAST_BYTES = 100, MOST_BYTES = 32 * 1024 };
#define GAP_BYTES (60 * HT_KIB)

static void expect(void *block, size_t bytes, const char *what)
{
    HT_CHECK(block != NULL, "%s of %zu bytes was refused", what, bytes);
    memset(block, 1, bytes);
}

int main(void)
{
    static void *gaps[GAPS_MOST];
    ht_start();
    HT_API(hak_free_sized);
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    struct hak_heap *heap = api_hak_heap_create();
    HT_CHECK(heap != NULL, "no heap");
    for (size_t i = 0; i < GAPS_MOST; i++) {
        gaps[i] = malloc(GAP_BYTES);
        HT_CHECK(gaps[i] != NULL, "malloc failed");
    }
    ht_limit_addresses(0);
    ht_exhaust_all();
    for (size_t i = 0; i < GAPS_MOST; i += 2) { // never two neighbours
        free(gaps[i]);
    }
    for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes += bytes / 4) {
        void *block = ht_hide(malloc(bytes));
        expect(block, bytes, "malloc");
        expect(ht_hide(malloc(bytes)), bytes, "malloc");
        expect(ht_hide(api_hak_heap_malloc(heap, bytes)), bytes, "a heap's");
        api_hak_free_sized(block, bytes);
    }
    ht_limit_addresses(SIZE_MAX);
    api_hak_heap_destroy(heap);
    return 0;
}
