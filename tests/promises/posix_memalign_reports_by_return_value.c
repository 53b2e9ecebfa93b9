// posix_memalign returns EINVAL for an alignment that is not a power of two multiple of a
// pointer's size, and ENOMEM when memory is exhausted; then neither errno nor the
// caller's pointer changes.
#include "../support/promise.h"

int main(void)
{
    ht_start();
    static const size_t wrong[] = {0, 1, 2, 3, 4, 7, 12, 24, 63, 4095, 4097, SIZE_MAX};
    static char somewhere;
    void *const mark = &somewhere;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *block = mark;
        errno = 7;
        int error = posix_memalign(&block, ht_hide_size(wrong[i]), 100);
        HT_CHECK(error == EINVAL, "alignment %zu: returned %d, not EINVAL", wrong[i], error);
        HT_CHECK(errno == 7, "alignment %zu: errno changed to %d", wrong[i], errno);
        HT_CHECK(block == mark, "alignment %zu: the pointer changed", wrong[i]);
    }
    for (size_t alignment = sizeof(void *); alignment <= 64 * HT_MIB; alignment *= 2) {
        for (size_t size = 0; size < 3 * HT_MIB; size = size * 5 + 1) {
            void *block = NULL;
            int error = posix_memalign(&block, alignment, size);
            HT_CHECK(error == 0, "posix_memalign(%zu, %zu): %d", alignment, size, error);
            HT_CHECK(block != NULL, "posix_memalign(%zu, %zu): NULL", alignment, size);
            HT_CHECK((uintptr_t)block % alignment == 0, "%p: not aligned to %zu", block, alignment);
            memset(block, 1, size);
            free(block);
        }
    }
    void *block = mark;
    errno = 7;
    int error = posix_memalign(&block, 64, ht_hide_size(SIZE_MAX - 4096));
    HT_CHECK(error == ENOMEM, "an impossible size: returned %d, not ENOMEM", error);
    HT_CHECK(block == mark, "an impossible size: the pointer changed");
    // An alignment near the top of the address space is impossible, too.
    error = posix_memalign(&block, (size_t)1 << 62, 16);
    HT_CHECK(error == ENOMEM, "alignment 2^62: returned %d, not ENOMEM", error);
    return 0;
}
