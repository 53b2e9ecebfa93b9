// its names for all
// native only
// If no memory is left (RLIMIT_AS), the free memory of retired slabs of one size serves smaller blocks and heaps, though the
// descriptors of their slabs take more: in mode secure too, where each block has 16 bytes behind it.
#include "../support/api.h"

#include "../support/addresses.h"

enum { MOST = 20000, STAYS = 500, HEAPS = 20, LARGER_BYTES = 8000, SMALLER_BYTES = 16 };

struct smaller {
    struct smaller *next;
    struct smaller *self;
};
_Static_assert(sizeof(struct smaller) == SMALLER_BYTES, "it fills the block");

int main(void)
{
    static void *larger[MOST];
    ht_start();
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    ht_limit_addresses(64 * HT_MIB);
    size_t count = 0;
    while (count < MOST && (larger[count] = malloc(LARGER_BYTES)) != NULL) {
        count++;
    }
    HT_CHECK(count > 5000 && count < MOST, "%zu blocks were taken", count);
    size_t free_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % STAYS != 0) { // about one in each superslab, so that none can be unmapped
            free(larger[i]);
            free_bytes += LARGER_BYTES;
        }
    }
    for (unsigned i = 0; i < HEAPS; i++) {
        struct hak_heap *heap = api_hak_heap_create();
        HT_CHECK(heap != NULL, "heap %u was refused", i);
        HT_CHECK(ht_hide(api_hak_heap_malloc(heap, SMALLER_BYTES)) != NULL, "heap %u is empty", i);
    }
    size_t got = 0;
    struct smaller *last = NULL;
    struct smaller *block;
    while ((block = malloc(SMALLER_BYTES)) != NULL) {
        *block = (struct smaller){last, block};
        last = block;
        got += SMALLER_BYTES;
    }
    HT_CHECK(got >= free_bytes / 10 * 4, "%zu bytes were had of %zu", got, free_bytes);
    for (; last != NULL; last = last->next) {
        HT_CHECK(last->self == last, "a block was changed");
    }
    return 0;
}
