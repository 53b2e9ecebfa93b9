// sleeps
// native only
// not secure: what is free does not wait
// For a second thread that only frees, no sweeper is started, as only malloc starts one. The thread itself gives back what it frees
// of the first thread's slabs, also of slabs that stay: few blocks of a size without pages of their own, and many small ones.
#include "../support/peak.h"

#include <pthread.h>

enum {
    LARGER_BYTES = 32000,
    LARGERS = 1333,
    SMALLER_BYTES = 1000,
    SMALLERS = 100 * 1000,
    STAYS = 40
};

static void *blocks[SMALLERS];
static unsigned stays_of; // one block in this many stays
static pthread_barrier_t freed;
static pthread_barrier_t finished;

static void *free_most(void *argument)
{
    for (size_t i = 0; i < SMALLERS; i++) {
        if (i % stays_of != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&finished);
    return argument;
}

// `pages_bytes`: the bytes of the pages with blocks that stay.
static void expect_fall(size_t bytes, size_t count, unsigned stays, size_t pages_bytes)
{
    pthread_t thread;
    const long baseline = ht_rss_kib();
    ht_fill(blocks, count, bytes);
    stays_of = stays;
    pthread_create(&thread, NULL, free_most, NULL);
    pthread_barrier_wait(&freed);
    ht_expect_rss(ht_fallen_kib(baseline, pages_bytes), HT_FALL_MS, "freed by another thread");
    pthread_barrier_wait(&finished);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < count; i += stays) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

int main(void)
{
    ht_start();
    pthread_barrier_init(&freed, NULL, 2);
    pthread_barrier_init(&finished, NULL, 2);
    expect_fall(LARGER_BYTES, LARGERS, 4, LARGERS / 4 * 32 * HT_KIB);
    expect_fall(SMALLER_BYTES, SMALLERS, STAYS, SMALLERS / STAYS * 4 * HT_KIB);
    return 0;
}
