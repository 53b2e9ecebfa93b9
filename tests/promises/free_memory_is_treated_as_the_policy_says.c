// preload only
// native only
// not secure: a large block has a mapping of its own, which ends with it
// with features
// Option free_policy: after its wait, freed memory stays, may be reclaimed by the kernel, is purged, or is released with its
// addresses.
#include "../support/memory.h"
#include "../support/options.h"

enum { NOW, LAZY, UNMAP, KEEP, BLOCKS = 640 };
static void *blocks[BLOCKS];

static size_t mapped(void)
{
    HT_API(hak_stats_read);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    return stats.mapped_bytes;
}

// Free 64 MiB, with time to purge. (A program with one thread may swing by less, and keep it.)
static void swing(uint64_t policy)
{
    ht_set_option("free_policy", policy);
    ht_fill(blocks, BLOCKS, 100 * HT_KIB);
    ht_free_all(blocks, BLOCKS);
}

int main(void)
{
    ht_start();
    ht_set_option("decay_ms", 100);
    const long before = ht_rss_kib();

    swing(KEEP);
    ht_sleep_ms(1500);
    HT_CHECK(ht_rss_kib() > before + 24 * 1024, "given back, though it is to be kept");

    swing(LAZY);
    const long until = ht_now_ms() + 5000;
    while (ht_proc_number(HT_SMAPS, "LazyFree") < 20 * 1024 && ht_now_ms() < until) {
        ht_sleep_ms(50);
    }
    HT_CHECK(ht_proc_number(HT_SMAPS, "LazyFree") >= 20 * 1024, "not for the kernel to take");
    // Memory that is used again after that is not taken for zeros.
    for (int i = 0; i < BLOCKS; i++) {
        char *block = calloc(1, 100 * HT_KIB);
        blocks[i] = block;
        for (size_t at = 0; at < 100 * HT_KIB; at += 512) {
            HT_CHECK(block[at] == 0, "calloc's block is not zero");
        }
    }
    ht_free_all(blocks, BLOCKS);

    swing(NOW);
    // A heap of 6 MiB, with all that waits, gives nothing back before its time (docs/decisions/0033), and no call follows here:
    // whether that stays depends on when the last frees ticked. The rest is our descriptors.
    ht_expect_rss(before + 7 * 1024, 5000, "given back now");
    const size_t kept_addresses = mapped();
    HT_CHECK(kept_addresses >= 32 * HT_MIB, "the addresses are gone, too");

    swing(UNMAP);
    const long end = ht_now_ms() + 5000;
    while (mapped() > kept_addresses / 2 && ht_now_ms() < end) {
        ht_sleep_ms(50);
    }
    HT_CHECK(mapped() <= kept_addresses / 2, "still %zu bytes mapped", mapped());
    return 0;
}
