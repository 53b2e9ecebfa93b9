// A request above PTRDIFF_MAX gets NULL and ENOMEM from every entry point, and
// a failed realloc leaves its block as it was.
#include "../support/promise.h"

static void must_fail(void *block, const char *call, size_t size)
{
    HT_CHECK(block == NULL, "%s(%#zx) gave a block", call, size);
    HT_CHECK(errno == ENOMEM, "%s(%#zx): errno is %d, not ENOMEM", call, size, errno);
    errno = 0;
}

static void check_realloc(size_t held, size_t size)
{
    unsigned char *block = malloc(held);
    HT_CHECK(block != NULL, "malloc(%zu) failed", held);
    memset(block, 0x5a, held);
    errno = 0;
    must_fail(realloc(ht_hide(block), size), "realloc", size);
    must_fail(reallocarray(ht_hide(block), size, 1), "reallocarray", size);
    for (size_t i = 0; i < held; i++) {
        HT_CHECK(block[i] == 0x5a, "a failed realloc changed byte %zu of %zu", i, held);
    }
    free(block);
}

int main(void)
{
    ht_start();
    static const size_t sizes[] = {
        PTRDIFF_MAX, // the largest object; no machine has that much
        (size_t)PTRDIFF_MAX + 1,
        (size_t)PTRDIFF_MAX + 4096,
        SIZE_MAX - 65536,
        SIZE_MAX - 4096,
        SIZE_MAX - 4095,
        SIZE_MAX - 16,
        SIZE_MAX - 1,
        SIZE_MAX,
    };
    static const size_t alignments[] = {8, 16, 64, 4096, 65536, 4 * HT_MIB, HT_GIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = ht_hide_size(sizes[i]);
        errno = 0;
        must_fail(malloc(size), "malloc", size);
        must_fail(calloc(size, 1), "calloc", size);
        must_fail(calloc(1, size), "calloc", size);
        must_fail(realloc(NULL, size), "realloc(NULL)", size);
        must_fail(ht_hide(valloc(size)), "valloc", size);
        must_fail(ht_hide(pvalloc(size)), "pvalloc", size);
        for (size_t j = 0; j < sizeof alignments / sizeof *alignments; j++) {
            must_fail(aligned_alloc(alignments[j], size), "aligned_alloc", size);
            must_fail(memalign(alignments[j], size), "memalign", size);
            void *block = &block;
            int error = posix_memalign(&block, alignments[j], size);
            HT_CHECK(error == ENOMEM, "posix_memalign(%#zx) returned %d", size, error);
        }
        check_realloc(1, size);
        check_realloc(100, size);
        check_realloc(5000, size);
        check_realloc(500000, size);
        check_realloc(5000000, size);
    }
    return 0;
}
