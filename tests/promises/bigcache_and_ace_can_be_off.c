// preload only
// env: HAKMEM_BIGCACHE=off HAKMEM_ACE=off
// not secure: what waits in quarantine counts as cached
// with features
// Without BigCache no freed large block is kept; without ACE no magazine grows.
#include "../support/api.h"

static struct hak_stats stats_now(void)
{
    HT_API(hak_stats_read);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    return stats;
}

int main(void)
{
    ht_start();
    for (size_t bytes = 40 * HT_KIB; bytes < 8 * HT_MIB; bytes *= 2) {
        free(ht_hide(malloc(bytes)));
        free(ht_hide(malloc(bytes + 5000)));
    }
    HT_CHECK(stats_now().kept_bytes == 0, "%zu bytes kept", stats_now().kept_bytes);

    // Swings that would make a magazine of 64-byte blocks hold thousands.
    static void *blocks[5000];
    for (int swing = 0; swing < 50; swing++) {
        for (size_t i = 0; i < 5000; i++) {
            blocks[i] = malloc(64);
        }
        for (size_t i = 0; i < 5000; i++) {
            free(blocks[i]);
        }
    }
    const size_t cached = stats_now().cached_bytes;
    HT_CHECK(cached < 64 * HT_KIB, "%zu bytes in magazines", cached);
    return 0;
}
