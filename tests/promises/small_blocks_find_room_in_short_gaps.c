// its names for all
// native only
// Where no memory is left but gaps of a unit (64 KiB) each, blocks of every small size are still served: also those whose slabs are
// longer than that. They may be freed with their size, and a heap's end with it.
#include "../support/api.h"

#include "../support/memory.h"

#include <sys/resource.h>

enum { GAPS_MOST = 2000, LEAST_BYTES = 100, MOST_BYTES = 32 * 1024 };
#define GAP_BYTES (60 * HT_KIB)

static void limit(bool is_limited)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur =
        is_limited ? (size_t)ht_proc_number("/proc/self/status", "VmSize") * HT_KIB : RLIM_INFINITY;
    HT_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
}

static void exhaust(void)
{
    for (size_t bytes = 64 * HT_MIB; bytes >= 16; bytes /= 2) {
        while (ht_hide(malloc(bytes)) != NULL) {
        }
    }
}

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
    limit(true);
    exhaust();
    for (size_t i = 0; i < GAPS_MOST; i += 2) { // never two beside each other
        free(gaps[i]);
    }
    for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes += bytes / 4) {
        void *block = ht_hide(malloc(bytes));
        expect(block, bytes, "malloc");
        expect(ht_hide(malloc(bytes)), bytes, "malloc");
        expect(ht_hide(api_hak_heap_malloc(heap, bytes)), bytes, "a heap's");
        api_hak_free_sized(block, bytes);
    }
    limit(false);
    api_hak_heap_destroy(heap);
    return 0;
}
