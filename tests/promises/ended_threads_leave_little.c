// native only
// Threads that have worked at the same time, with 200 blocks of 16 bytes to 2 KiB each, and have ended leave at most 32 KiB
// each, even if no call follows the end of the last one, and 6 KiB after malloc_trim; also if as many come again.
#include "../support/memory.h"

#include <malloc.h>
#include <pthread.h>

enum {
    ENDED_KIB = 32,
    TRIMMED_KIB = 6,
    THREADS = 1000,
    BLOCKS = 200,
    LEAST = 16,
    MOST = 2048,
    TURNS = 3
};

static pthread_t threads[THREADS];
static pthread_barrier_t gate;

static void *work(void *unused)
{
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t bytes = LEAST + i * 37 % (MOST - LEAST + 1);
        blocks[i] = malloc(bytes);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", bytes);
        memset(blocks[i], 1, bytes);
    }
    pthread_barrier_wait(&gate); // all have their blocks
    ht_free_all(blocks, BLOCKS);
    pthread_barrier_wait(&gate); // all have freed
    return unused;
}

static void expect_each(long before_kib, long most_kib)
{
    const long each = (ht_rss_kib() - before_kib) / THREADS;
    HT_CHECK(each <= most_kib, "%ld KiB stay of each thread, promised %ld", each, most_kib);
}

int main(void)
{
    ht_start();
    pthread_barrier_init(&gate, NULL, THREADS);
    const long before = ht_rss_kib();
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < THREADS; i++) {
            if (pthread_create(&threads[i], NULL, work, NULL) != 0) {
                HT_SKIP("no %d threads at once", THREADS);
            }
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        expect_each(before, ENDED_KIB);
        malloc_trim(0);
        expect_each(before, TRIMMED_KIB);
    }
    return 0;
}
