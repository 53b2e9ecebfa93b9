// A count * size that overflows gives ENOMEM, never a block that is too small; one
// that does not overflow works.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2},
        {2, SIZE_MAX},
        {SIZE_MAX / 2 + 1, 2},
        {SIZE_MAX / 16 + 1, 16},
        {(size_t)1 << 32, (size_t)1 << 32},
        {((size_t)1 << 32) + 1, ((size_t)1 << 32) - 1},
        {SIZE_MAX / 3 + 1, 3},
        {SIZE_MAX, SIZE_MAX},
        {(size_t)1 << 63, 2},
        {3, ((size_t)1 << 63) - 1},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t count = ht_hide_size(pairs[i][0]);
        size_t size = ht_hide_size(pairs[i][1]);
        errno = 0;
        HT_CHECK(ht_hide(calloc(count, size)) == NULL, "calloc(%#zx, %#zx)", count, size);
        HT_CHECK(errno == ENOMEM, "calloc(%#zx, %#zx): errno %d", count, size, errno);
        errno = 0;
        HT_CHECK(ht_hide(reallocarray(NULL, count, size)) == NULL, "reallocarray of NULL");
        HT_CHECK(errno == ENOMEM, "reallocarray(NULL): errno %d", errno);
        char *block = malloc(32);
        HT_CHECK(block != NULL, "malloc(32) failed");
        memcpy(block, "untouched", 10);
        errno = 0;
        HT_CHECK(ht_hide(reallocarray(ht_hide(block), count, size)) == NULL, "reallocarray");
        HT_CHECK(errno == ENOMEM, "reallocarray: errno %d", errno);
        HT_CHECK(strcmp(block, "untouched") == 0, "a failed reallocarray changed its block");
        free(block);
    }
    unsigned char *zeros = calloc(1000, 33);
    HT_CHECK(zeros != NULL, "calloc(1000, 33) failed");
    for (size_t i = 0; i < 33000; i++) {
        HT_CHECK(zeros[i] == 0, "calloc(1000, 33): byte %zu is not 0", i);
        zeros[i] = 7;
    }
    zeros = reallocarray(zeros, 2000, 33);
    HT_CHECK(zeros != NULL && zeros[0] == 7 && zeros[32999] == 7, "reallocarray lost its bytes");
    free(zeros);
    return 0;
}
