// not tagged: takes longest under qemu, and tags make no difference
//
// Whatever its size, and however it was allocated or resized, a block is aligned for
// any ordinary object: alignof(max_align_t).
#include "../support/promise.h"

static void check(const void *block, const char *call, size_t size)
{
    HT_CHECK(block != NULL, "%s(%zu) failed", call, size);
    HT_CHECK((uintptr_t)block % _Alignof(max_align_t) == 0,
             "%s(%zu) gave %p, not aligned to %zu",
             call,
             size,
             block,
             _Alignof(max_align_t));
}

int main(void)
{
    ht_start();
    static void *kept[70000];
    for (size_t size = 0; size < 70000; size++) {
        void *block = malloc(size);
        check(block, "malloc", size);
        void *zeros = calloc(size, 1);
        check(zeros, "calloc", size);
        zeros = realloc(zeros, size + 1 + size / 3);
        check(zeros, "realloc", size + 1 + size / 3);
        free(zeros);
        if (size % 7 == 0 || size < 2000) {
            kept[size] = block; // so that later blocks come from other places
        } else {
            free(block);
        }
    }
    for (size_t size = 0; size < 70000; size++) {
        free(kept[size]);
    }
    for (size_t size = 70000; size < HT_GIB; size += size / 9) {
        void *block = malloc(size);
        check(block, "malloc", size);
        free(block);
    }
    return 0;
}
