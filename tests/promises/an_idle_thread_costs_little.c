// serial
// native only
// args in secure: 160
// A thread that has allocated a little and is idle costs at most 64 KiB more
// than a thread that has not, also if all start side by side: halfway each one
// finds that the heap has grown by much, and tidies its magazines. In mode secure it is
// 160 KiB: two blocks of a class are in two pages, by chance, and there are the tables
// of quarantine and stocks.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 200 };

static pthread_barrier_t halfway;
static pthread_barrier_t ready;
static pthread_barrier_t finished;

static void *idle(void *allocates)
{
    void *kept[24];
    size_t count = 0;
    if (allocates != NULL) {
        for (size_t size = 16; size <= 4096; size *= 2) {
            if (size == 512) {
                pthread_barrier_wait(&halfway);
            }
            void *freed = malloc(size);
            HT_CHECK(freed != NULL, "malloc(%zu) failed", size);
            memset(freed, 1, size);
            kept[count] = malloc(size);
            HT_CHECK(kept[count] != NULL, "malloc(%zu) failed", size);
            memset(kept[count], 1, size);
            count++;
            free(freed);
        }
    }
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&finished);
    while (count > 0) {
        free(kept[--count]);
    }
    return NULL;
}

static long rss_of_threads(void *allocates)
{
    static pthread_t threads[THREADS];
    pthread_barrier_init(&halfway, NULL, THREADS);
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    pthread_barrier_init(&finished, NULL, THREADS + 1);
    long before = ht_rss_kib();
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, idle, allocates) == 0, "no thread %zu", i);
    }
    pthread_barrier_wait(&ready);
    long rss = ht_rss_kib() - before;
    pthread_barrier_wait(&finished);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return rss;
}

int main(int count, char **arguments)
{
    ht_start();
    const long most = count > 1 ? strtol(arguments[1], NULL, 10) : 64;
    rss_of_threads(NULL); // once for the stacks, which the C library keeps
    long without = rss_of_threads(NULL);
    long with = rss_of_threads(&ready);
    long each = (with - without) / THREADS;
    HT_CHECK(each <= most, "%ld KiB each, promised at most %ld", each, most);
    return 0;
}
