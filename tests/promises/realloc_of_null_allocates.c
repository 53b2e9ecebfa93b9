// free(NULL) does nothing, and realloc(NULL, n) is malloc(n).
#include "../support/promise.h"

int main(void)
{
    ht_start();
    errno = 7;
    for (int i = 0; i < 1000; i++) {
        free(ht_hide(NULL));
    }
    HT_CHECK(errno == 7, "free(NULL) changed errno");
    for (size_t size = 1; size <= 64 * HT_MIB; size *= 3) {
        unsigned char *block = realloc(ht_hide(NULL), size);
        HT_CHECK(block != NULL, "realloc(NULL, %zu) failed", size);
        block[0] = 1;
        block[size - 1] = 1;
        HT_CHECK(malloc_usable_size(block) >= size, "realloc(NULL, %zu) is too small", size);
        free(block);
    }
    HT_CHECK(malloc_usable_size(NULL) == 0, "malloc_usable_size(NULL) is not 0");
    return 0;
}
