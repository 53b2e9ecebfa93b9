// env: HAKMEM_CANARIES=1
// preload only
// with features
//
// With a canary behind it, a block has all the requested bytes, all of them usable, and
// malloc_usable_size reports no more than that.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    for (size_t size = 0; size <= 33 * HT_KIB; size += size / 16 + 1) {
        char *block = ht_hide(malloc(size));
        HT_CHECK(block != NULL && (uintptr_t)block % 16 == 0,
                 "malloc(%zu) gave %p",
                 size,
                 (void *)block);
        const size_t usable = malloc_usable_size(block);
        HT_CHECK(usable >= size, "malloc(%zu): %zu usable", size, usable);
        HT_CHECK(usable == size || size + 8 > 32 * HT_KIB, "malloc(%zu): %zu usable", size, usable);
        memset(block, 1, usable);
        block = ht_hide(realloc(block, 2 * size + 1));
        for (size_t i = 0; i < size; i++) {
            HT_CHECK(block[i] == 1, "byte %zu of %zu was lost by realloc", i, size);
        }
        memset(block, 2, malloc_usable_size(block));
        free(block);
        for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
            char *aligned = ht_hide(aligned_alloc(alignment, size));
            HT_CHECK(aligned != NULL && (uintptr_t)aligned % alignment == 0,
                     "aligned_alloc(%zu, %zu) gave %p",
                     alignment,
                     size,
                     (void *)aligned);
            memset(aligned, 3, malloc_usable_size(aligned));
            free(aligned);
        }
    }
    return 0;
}
