// serial
// native only
// A program takes all keys for thread-local data before it allocates. Its threads' memory still comes back when they
// end.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 1000, BLOCKS = 20 };

static void *work(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        char *block = malloc(100 * (i + 1));
        HT_CHECK(block != NULL, "malloc failed");
        block[0] = 1;
        free(block);
    }
    return NULL;
}

static void come_and_go(size_t threads)
{
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create failed");
        HT_CHECK(pthread_join(thread, NULL) == 0, "pthread_join failed");
    }
}

int main(void)
{
    pthread_key_t key;
    while (pthread_key_create(&key, NULL) == 0) {
        continue;
    }
    ht_start();
    come_and_go(10);
    const long before = ht_peak_rss_kib();
    come_and_go(THREADS);
    const long grown = ht_peak_rss_kib() - before;
    HT_CHECK(grown < 4 * 1024, "%ld KiB more resident after %d threads", grown, THREADS);
    return 0;
}
