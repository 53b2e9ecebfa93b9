// serial
// native only
// calloc of a large block relies on the kernel's zero pages: its memory becomes
// resident only as the program writes to it.
#include "../support/memory.h"

int main(void)
{
    ht_start();
    long before = ht_rss_kib();
    unsigned char *huge = calloc(256 * HT_KIB, HT_KIB);
    HT_CHECK(huge != NULL, "calloc of 256 MiB failed");
    long grown = ht_rss_kib() - before;
    HT_CHECK(grown < 1024, "calloc of 256 MiB made %ld KiB resident", grown);
    for (size_t i = 0; i < 256 * HT_MIB; i += 16 * HT_MIB) {
        HT_CHECK(huge[i] == 0, "calloc's byte %zu is not 0", i);
        huge[i] = 1;
    }
    free(huge);
    enum { BLOCKS = 128 };
    unsigned char *blocks[BLOCKS];
    before = ht_rss_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = calloc(1, HT_MIB);
        HT_CHECK(blocks[i] != NULL, "calloc of 1 MiB failed");
    }
    grown = ht_rss_kib() - before;
    HT_CHECK(grown < 4096, "128 fresh blocks of 1 MiB from calloc made %ld KiB resident", grown);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return 0;
}
