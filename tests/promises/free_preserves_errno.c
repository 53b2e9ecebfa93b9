// free does not change errno, also when it gives pages back to the system.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    enum { BLOCKS = 64, MARK = 1234 };
    for (size_t size = 1; size < 64 * HT_MIB; size += size / 2 + 1) {
        void *blocks[BLOCKS];
        size_t count = size < HT_MIB ? BLOCKS : 4;
        for (int aligned = 0; aligned < 2; aligned++) {
            for (size_t i = 0; i < count; i++) {
                blocks[i] = aligned ? memalign(4096, size) : malloc(size);
                HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
                memset(blocks[i], 1, size);
            }
            for (size_t i = 0; i < count; i++) {
                errno = MARK;
                free(blocks[i]);
                HT_CHECK(errno == MARK, "free of %zu bytes set errno to %d", size, errno);
            }
        }
    }
    errno = MARK;
    free(ht_hide(NULL));
    HT_CHECK(errno == MARK, "free(NULL) set errno to %d", errno);
    return 0;
}
