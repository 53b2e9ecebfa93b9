// sleeps
// native only
// The memory by which realloc shrinks large blocks goes back while the program sleeps, without another call.
#include "../support/memory.h"

enum { BLOCKS_MAX = 20 };

static void shrink(size_t from, size_t to, size_t count)
{
    void *blocks[BLOCKS_MAX];
    free(ht_hide(malloc(1))); // the first call sets the heap up
    const long baseline = ht_rss_kib();
    ht_fill(blocks, count, from);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = ht_hide(realloc(blocks[i], to));
        HT_CHECK(blocks[i] != NULL, "realloc refused to shrink");
    }
    char what[96];
    snprintf(what, sizeof what, "%zu blocks of %zu shrunk to %zu", count, from, to);
    ht_expect_rss(ht_fallen_kib(baseline, count * to), 2000, what);
    ht_free_all(blocks, count);
}

int main(void)
{
    ht_start();
    ht_need_memory(256 * HT_MIB);
    shrink(200 * HT_MIB, HT_MIB, 1);
    shrink(10 * HT_MIB, 100 * HT_KIB, BLOCKS_MAX);
    shrink(60 * HT_MIB, 2 * HT_MIB, 2);
    return 0;
}
