// not secure: it is a mode of its own
// preload only
// env: HAKMEM_MODE=research
// with features
// In mode research the slabs' bitmaps show at every moment which blocks are in use: a free by any thread shows
// at once, and no blocks wait in a cache. Slow paths are timed, and blocks sampled.
#include "../support/api.h"

#include <pthread.h>

enum { BLOCKS = 300 };
static void *blocks[BLOCKS];

static struct hak_stats stats_now(void)
{
    HT_API(hak_stats_read);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    HT_CHECK(stats.cached_bytes == 0, "%zu bytes in caches", stats.cached_bytes);
    return stats;
}

static void *free_half(void *unused)
{
    for (size_t i = 0; i < BLOCKS; i += 2) {
        const size_t before = stats_now().live_blocks;
        free(blocks[i]);
        HT_CHECK(stats_now().live_blocks == before - 1, "another thread's free does not show");
    }
    return unused;
}

int main(void)
{
    ht_start();
    HT_API(hak_stats_json);
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t before = stats_now().live_blocks;
        blocks[i] = malloc(16 + 40 * i);
        HT_CHECK(stats_now().live_blocks == before + 1, "a malloc does not show");
    }
    pthread_t other;
    HT_CHECK(pthread_create(&other, NULL, free_half, NULL) == 0, "no thread");
    pthread_join(other, NULL);
    for (size_t i = 1; i < BLOCKS; i += 2) {
        const size_t before = stats_now().live_blocks;
        free(blocks[i]);
        HT_CHECK(stats_now().live_blocks == before - 1, "a free does not show");
    }
    static char text[65536];
    HT_CHECK(api_hak_stats_json(text, sizeof text) < sizeof text, "too long");
    HT_CHECK(strstr(text, "\"timings\":[{") != NULL, "nothing is timed");
    HT_API(hak_option_get);
    uint64_t every = 0;
    HT_CHECK(api_hak_option_get("sample_bytes", &every) && every != 0, "nothing is sampled");
    return 0;
}
