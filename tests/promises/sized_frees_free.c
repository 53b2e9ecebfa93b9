// C23's free_sized and free_aligned_sized free blocks of malloc, calloc,
// realloc and aligned_alloc, and leave nothing behind.
#include "../support/memory.h"

void free_sized(void *block, size_t size) __attribute__((weak));
void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

int main(void)
{
    ht_start();
    void (*sized)(void *, size_t);
    void (*aligned_sized)(void *, size_t, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)(&aligned_sized) = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    sized = sized != NULL ? sized : free_sized;
    aligned_sized = aligned_sized != NULL ? aligned_sized : free_aligned_sized;
    if (sized == NULL && !ht_is_preloaded()) {
        HT_SKIP("the C library has no free_sized to link with");
    }
    HT_CHECK(sized != NULL, "there is no free_sized");
    HT_CHECK(aligned_sized != NULL, "there is no free_aligned_sized");
    errno = 7;
    sized(NULL, 10);
    aligned_sized(NULL, 64, 128);
    long before = ht_rss_kib();
    for (int round = 0; round < 20; round++) {
        for (size_t size = 1; size < 8 * HT_MIB; size += size / 4 + 1) {
            void *block = calloc(1, size);
            HT_CHECK(block != NULL, "calloc(1, %zu) failed", size);
            memset(block, 1, size);
            sized(block, size);
            size_t whole = (size + 63) / 64 * 64;
            void *aligned = aligned_alloc(64, whole);
            HT_CHECK(aligned != NULL, "aligned_alloc(64, %zu) failed", whole);
            memset(aligned, 1, whole);
            aligned_sized(aligned, 64, whole);
        }
    }
    HT_CHECK(errno == 7, "a sized free set errno to %d", errno);
    // One round allocates 80 MiB; without a leak only a few of them stay.
    ht_expect_rss(before + 32 * 1024, 2000, "sized frees leak");
    return 0;
}
