// A block from aligned_alloc can be freed with its alignment and the requested size, also if
// the alignment made the block larger, and also when sizes are checked.
// env: HAKMEM_CHECK=1
// preload only
#include "../support/memory.h"

int main(void)
{
    ht_start();
    void (*aligned_sized)(void *, size_t, size_t);
    *(void **)(&aligned_sized) = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    HT_CHECK(aligned_sized != NULL, "there is no free_aligned_sized");
    for (size_t alignment = 1; alignment <= 4 * HT_MIB; alignment *= 2) {
        for (size_t size = 1; size < 4 * HT_MIB; size += size + 1) {
            void *block = aligned_alloc(alignment, size);
            HT_CHECK(block != NULL, "aligned_alloc(%zu, %zu) failed", alignment, size);
            aligned_sized(block, alignment, size);
        }
    }
    return 0;
}
