// env: HAKMEM_QUARANTINE_BYTES=65536
// preload only
// not secure: a canary makes each block larger, so that fewer go by
// with features
//
// A block is reused only after as many bytes as the option says were freed after it; then it is.
#include "../support/promise.h"

enum { SIZE = 64, WAIT = 65536 / SIZE };

int main(void)
{
    ht_start();
    uintptr_t first = (uintptr_t)ht_hide(malloc(SIZE));
    free((void *)first);
    for (int i = 0; i < WAIT - 1; i++) {
        void *block = ht_hide(malloc(SIZE));
        HT_CHECK((uintptr_t)block != first, "it came back after %d others", i);
        free(block);
    }
    for (int i = 0; i < 10 * WAIT; i++) {
        void *block = ht_hide(malloc(SIZE));
        if ((uintptr_t)block == first) {
            return 0;
        }
        free(block);
    }
    HT_BREAK("it never came back");
}
