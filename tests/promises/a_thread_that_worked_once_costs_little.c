// sleeps
// native only
// args in secure: 160
// A thread that has worked once, with 200 blocks of 16 bytes to 2 KiB, has freed them all and sleeps costs at most 64 KiB
// after six seconds, its stack included; also if it had worked much before and slept in between. In mode secure it is 160 KiB, with
// the tables of quarantine and stocks.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 100, BLOCKS = 200, MANY = 1000, LEAST = 16, MOST = 2048, TIMEOUT_MS = 6000 };

static pthread_t threads[THREADS];
static pthread_barrier_t gate;

static void work(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = LEAST + i * 37 % (MOST - LEAST + 1);
        blocks[i] = malloc(bytes);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", bytes);
        memset(blocks[i], 1, bytes);
    }
    pthread_barrier_wait(&gate); // all have their blocks
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

static void *live(void *table)
{
    if (table != NULL) {
        work(table, MANY);
        pthread_barrier_wait(&gate); // all have freed
        pthread_barrier_wait(&gate); // all have slept
    }
    void *blocks[BLOCKS];
    work(blocks, BLOCKS);
    pthread_barrier_wait(&gate); // all have freed
    pthread_barrier_wait(&gate); // all have been measured
    return NULL;
}

static void start_all(void **tables, size_t each)
{
    for (size_t i = 0; i < THREADS; i++) {
        void *table = tables != NULL ? &tables[i * each] : NULL;
        HT_CHECK(pthread_create(&threads[i], NULL, live, table) == 0, "no thread %zu", i);
    }
}

static void expect_little(long before, long most_kib, const char *what)
{
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    ht_expect_rss(before + THREADS * most_kib, TIMEOUT_MS, what);
    pthread_barrier_wait(&gate);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int count, char **arguments)
{
    ht_start();
    const long most_kib = count > 1 ? strtol(arguments[1], NULL, 10) : 64;
    void **tables = ht_map(THREADS * MANY * sizeof *tables);
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    const long before = ht_rss_kib();
    start_all(NULL, 0);
    expect_little(before, most_kib, "threads that worked once");
    start_all(tables, MANY);
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    ht_sleep_ms(3000); // meanwhile the memory of all goes back
    pthread_barrier_wait(&gate);
    expect_little(before, most_kib, "threads that had worked much before");
    return 0;
}
