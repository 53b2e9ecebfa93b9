// not tagged: qemu keeps some memory of its own for each mapping of a large block
//
// realloc(p, 0) frees p and returns NULL, as glibc's does, whose programs rely
// on it: a program that keeps p after that would free it twice, and one that
// ignores the result must not leak.
#include "../support/memory.h"

enum { ROUNDS = 2000 };

int main(void)
{
    ht_start();
    static const size_t sizes[] = {1, 64, 1000, 5000, 40000, 300000, 5000000};
    long before = ht_rss_kib();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *block = malloc(sizes[i]);
            HT_CHECK(block != NULL, "malloc(%zu) failed", sizes[i]);
            block[0] = 1;
            block[sizes[i] - 1] = 1;
            void *rest = realloc(ht_hide(block), ht_hide_size(0));
            HT_CHECK(rest == NULL, "realloc(p, 0) gave %p", rest);
        }
    }
    // A leak of just the smallest size class would be 32 bytes in each round.
    long grown = ht_rss_kib() - before;
    HT_CHECK(grown < 16 * 1024, "realloc(p, 0) leaks: %ld KiB more resident", grown);
    return 0;
}
