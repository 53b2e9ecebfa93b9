// sleeps
// native only
// What a thread freed goes back to the system also if that thread then only
// sleeps, and so never visits its own cache again.
#include "../support/peak.h"

#include <pthread.h>

enum { THREADS = 4 };

static pthread_barrier_t freed;
static pthread_barrier_t finished;

static const size_t sizes[THREADS] = {64, 1000, 5000, 200000};

static void *fill_free_and_idle(void *argument)
{
    size_t size = *(const size_t *)argument;
    size_t count = 24 * HT_MIB / size;
    void **blocks = ht_map(count * sizeof *blocks);
    ht_fill(blocks, count, size);
    ht_shuffle(blocks, count, size);
    ht_free_all(blocks, count);
    munmap(blocks, count * sizeof *blocks);
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&finished);
    return NULL;
}

int main(void)
{
    ht_start();
    pthread_barrier_init(&freed, NULL, THREADS + 1);
    pthread_barrier_init(&finished, NULL, THREADS + 1);
    long baseline = ht_rss_kib();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, fill_free_and_idle, (void *)(uintptr_t)&sizes[i]);
    }
    pthread_barrier_wait(&freed);
    ht_expect_rss(ht_fallen_kib(baseline, 0), HT_FALL_MS, "four idle threads freed all they had");
    pthread_barrier_wait(&finished);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
