// preload only
// native only
// with features
// hak_stats_read counts what the program holds, and hak_trim gives back what it
// does not hold.
#include "../support/api.h"

#include "../support/memory.h"

enum { BLOCKS = 20000, BLOCK_BYTES = 1000 };

int main(void)
{
    ht_start();
    HT_API(hak_stats_read);
    HT_API(hak_trim);
    static void *blocks[BLOCKS];
    struct hak_stats before;
    struct hak_stats full;
    struct hak_stats after;
    api_hak_stats_read(&before);
    ht_fill(blocks, BLOCKS, BLOCK_BYTES);
    void *large = malloc(10 * HT_MIB);
    HT_CHECK(large != NULL, "malloc failed");
    memset(large, 1, 10 * HT_MIB);
    api_hak_stats_read(&full);
    size_t least = (size_t)BLOCKS * BLOCK_BYTES + 10 * HT_MIB;
    size_t live = full.live_bytes - before.live_bytes;
    HT_CHECK(live >= least && live <= least + least / 8,
             "%zu bytes allocated, live grew by %zu",
             least,
             live);
    HT_CHECK(full.live_blocks - before.live_blocks == BLOCKS + 1,
             "%zu blocks more, not %d",
             full.live_blocks - before.live_blocks,
             BLOCKS + 1);
    HT_CHECK(full.mapped_bytes >= full.live_bytes, "live blocks lie outside what is mapped");
    ht_free_all(blocks, BLOCKS);
    free(large);
    api_hak_stats_read(&after);
    HT_CHECK(after.live_blocks == before.live_blocks,
             "%zu blocks live, before %zu",
             after.live_blocks,
             before.live_blocks);
    long rss = ht_rss_kib();
    size_t given_back = api_hak_trim();
    long fallen = rss - ht_rss_kib();
    HT_CHECK(given_back > 0 || fallen == 0, "hak_trim gave back %ld KiB and said 0", fallen);
    api_hak_stats_read(&after);
    HT_CHECK(after.dirty_bytes + after.kept_bytes + after.cached_bytes < HT_MIB,
             "after hak_trim %zu bytes still wait",
             after.dirty_bytes + after.kept_bytes + after.cached_bytes);
    return 0;
}
