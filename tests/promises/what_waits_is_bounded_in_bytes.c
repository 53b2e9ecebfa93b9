// serial
// native only
// env: HAKMEM_DIRTY_BYTES=8M HAKMEM_MAGAZINE_BYTES=1M HAKMEM_DECAY_MS=3600000
// Free memory that waits is bounded in bytes too: with a budget of 8 MiB, and a
// wait that never ends, no more than that stays resident, whatever the sizes.
// Beside it wait a freed large block of each size, and a thread's magazines.
#include "../support/peak.h"

enum { SIZES = 5 };

int main(void)
{
    ht_start();
    static const size_t sizes[SIZES] = {64, 1000, 20000, 100000, 3000000};
    const size_t total = 96 * HT_MIB;
    void **blocks = ht_map(total / sizes[0] * sizeof *blocks);
    for (size_t i = 0; i < SIZES; i++) {
        size_t count = total / sizes[i];
        free(ht_hide(malloc(sizes[i])));
        long baseline = ht_rss_kib();
        ht_fill(blocks, count, sizes[i]);
        ht_shuffle(blocks, count, i);
        ht_free_all(blocks, count);
        char what[64];
        snprintf(what, sizeof what, "all blocks of %zu freed", sizes[i]);
        ht_expect_rss(baseline + (8 + 8 + 1 + 4) * 1024, HT_FALL_MS, what);
    }
    return 0;
}
