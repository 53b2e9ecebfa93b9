// env: HAKMEM_DIRTY_BYTES=1G
// sleeps
// native only
// not secure: what is free does not wait
// A thread whose first call is a free may hold locks of the C library, so it starts no sweeper. But memory goes back while
// all threads sleep, as in other programs with threads, once malloc was called, by it or by another thread.
#include "../support/peak.h"

#include <pthread.h>

enum {
    BLOCK_BYTES = 1000,
    BLOCKS = 48 * 1024,
    LARGE_BYTES = 300 * 1000,
    AGAIN = 3000,
    LONG_LIFE_MS = 1200
};

static void *blocks[BLOCKS];
static void *others[AGAIN];
static pthread_barrier_t freed;
static pthread_barrier_t finished;

static void *free_and_idle(void *allocates)
{
    ht_free_all(blocks, BLOCKS);
    if (allocates != NULL) {
        ht_fill(others, AGAIN, 64);
    }
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&finished);
    return NULL;
}

static void expect_fall(long baseline, void *allocates, size_t main_bytes)
{
    pthread_t thread;
    ht_fill(blocks, BLOCKS, BLOCK_BYTES);
    pthread_create(&thread, NULL, free_and_idle, allocates);
    pthread_barrier_wait(&freed);
    void *block = main_bytes != 0 ? ht_hide(malloc(main_bytes)) : NULL;
    ht_expect_rss(
        ht_fallen_kib(baseline, AGAIN * 64), HT_FALL_MS, "freed by a thread that began with it");
    free(block);
    ht_sleep_ms(LONG_LIFE_MS); // after shorter lives, not every thread starts a sweeper
    pthread_barrier_wait(&finished);
    pthread_join(thread, NULL);
    ht_free_all(others, AGAIN);
}

int main(void)
{
    ht_start();
    pthread_barrier_init(&freed, NULL, 2);
    pthread_barrier_init(&finished, NULL, 2);
    long baseline = ht_rss_kib();
    expect_fall(baseline, blocks, 0);
    expect_fall(baseline, NULL, LARGE_BYTES);
    return 0;
}
