// soak in: musl
// serial
// native only
// static too
// not secure: blocks wait in quarantine, and with a block there its page
// A program with one thread frees, and makes no call afterwards: 8 MiB stay beyond twice what is in use, at once, however often
// it did so before.
#include "../support/peak.h"

enum { BYTES = 40 * HT_MIB, SIZES = 4, ROUNDS = 10, KEEP_ONE_IN = 10 };

static const size_t sizes[SIZES] = {32, 1000, 20000, 2000000};

// One in ten stays, in a row: what lies beside blocks in use is not free to go.
static void run(void **blocks, size_t size, unsigned rounds, bool keeps)
{
    const size_t count = BYTES / size;
    const size_t kept = keeps ? count / KEEP_ONE_IN : 0;
    const long baseline = ht_rss_kib();
    ht_fill(blocks, kept, size);
    for (unsigned round = 0; round < rounds; round++) {
        ht_fill(blocks + kept, count - kept, size);
        ht_put_in_order(blocks + kept, count - kept, round % HT_ORDERS);
        ht_free_all(blocks + kept, count - kept);
    }
    char what[80];
    snprintf(what, sizeof what, "blocks of %zu bytes, %u times, %zu in use", size, rounds, kept);
    // Such a program swings, and may keep as much as is in use.
    ht_expect_rss(ht_fallen_kib(baseline, 2 * kept * size), 0, what);
    ht_free_all(blocks, kept);
    malloc_trim(0);
}

int main(void)
{
    ht_start();
    void **blocks = ht_map(BYTES / sizes[0] * sizeof *blocks);
    for (unsigned i = 0; i < SIZES; i++) {
        for (unsigned rounds = 1; rounds <= ROUNDS; rounds += ROUNDS - 1) {
            run(blocks, sizes[i], rounds, false);
            run(blocks, sizes[i], rounds, true);
        }
    }
    return 0;
}
