// env: HAKMEM_ZERO_ON_FREE=1
// preload only
// with features
//
// The content of a block is erased when the block is freed: nobody can read it there afterwards.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    for (size_t size = 16; size <= 32 * HT_KIB; size *= 2) {
        char *block = ht_hide(malloc(size));
        memset(block, 'S', size);
        free(block);
        for (int i = 0; i < 100; i++) {
            const char *other = ht_hide(malloc(size));
            for (size_t j = 0; j < size; j++) {
                HT_CHECK(other[j] == 0, "byte %zu of a block of %zu is not zero", j, size);
            }
        }
    }
    return 0;
}
