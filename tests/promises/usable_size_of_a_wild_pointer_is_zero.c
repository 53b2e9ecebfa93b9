// malloc_usable_size of an address that is no block of ours is 0: a question
// does no harm, so unlike free of such an address it does not end the program.
#include "../support/memory.h"

int main(void)
{
    ht_start();
    static char variable[100];
    char *mapped = ht_map(HT_MIB);
    char *small = malloc(100);
    char *large = malloc(HT_MIB);
    void *const wild[] = {
        variable,
        variable + 1,
        (void *)1,
        (void *)16,
        (void *)0xdeadbeefdeadbeefu,
        (void *)UINTPTR_MAX,
        (void *)0x800000000000u,
        mapped,
        mapped + 65536,
        small + 1024 * HT_GIB, // how far the allocator's map reaches
        large + 1024 * HT_GIB,
    };
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        size_t usable = malloc_usable_size(ht_hide(wild[i]));
        HT_CHECK(usable == 0, "malloc_usable_size(%p) is %zu", wild[i], usable);
    }
    free(small);
    free(large);
    return 0;
}
