// sleeps
// native only
// Blocks that another thread frees go back to the system although the thread
// that allocated them sleeps and never drains its inbox.
#include "../support/peak.h"

#include <pthread.h>

enum { SIZES = 4 };

static const size_t sizes[SIZES] = {64, 1000, 5000, 200000};
static void **blocks[SIZES];
static size_t counts[SIZES];
static pthread_barrier_t filled;
static pthread_barrier_t finished;

static void *fill_and_idle(void *unused)
{
    for (size_t i = 0; i < SIZES; i++) {
        ht_fill(blocks[i], counts[i], sizes[i]);
    }
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&finished);
    return unused;
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < SIZES; i++) {
        counts[i] = 24 * HT_MIB / sizes[i];
        blocks[i] = ht_map(counts[i] * sizeof *blocks[i]);
    }
    pthread_barrier_init(&filled, NULL, 2);
    pthread_barrier_init(&finished, NULL, 2);
    long baseline = ht_rss_kib();
    pthread_t owner;
    pthread_create(&owner, NULL, fill_and_idle, NULL);
    pthread_barrier_wait(&filled);
    for (size_t i = 0; i < SIZES; i++) {
        ht_shuffle(blocks[i], counts[i], i);
        ht_free_all(blocks[i], counts[i]);
    }
    ht_expect_rss(ht_fallen_kib(baseline, 0), HT_FALL_MS, "freed by main, their owner sleeps");
    pthread_barrier_wait(&finished);
    pthread_join(owner, NULL);
    return 0;
}
