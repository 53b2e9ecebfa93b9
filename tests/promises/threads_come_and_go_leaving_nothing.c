// serial
// native only
// Thousands of threads that allocate, free and end leave behind neither memory nor
// addresses.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 10000, AT_ONCE = 8 };

static void *visit(void *argument)
{
    struct ht_random random = {(uintptr_t)argument};
    void *blocks[64];
    for (size_t i = 0; i < 64; i++) {
        size_t size = ht_random_size(&random, 20000);
        blocks[i] = malloc(size);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < 64; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void run_threads(size_t count)
{
    pthread_t threads[AT_ONCE];
    for (size_t i = 0; i < count; i += AT_ONCE) {
        for (size_t j = 0; j < AT_ONCE; j++) {
            HT_CHECK(pthread_create(&threads[j], NULL, visit, (void *)(uintptr_t)(i + j)) == 0,
                     "no thread %zu",
                     i + j);
        }
        for (size_t j = 0; j < AT_ONCE; j++) {
            pthread_join(threads[j], NULL);
        }
    }
}

int main(void)
{
    ht_start();
    // The most that eight threads hold at once (their quarantines, in mode
    // secure) shows only after many draws: the warm-up is as long as the test.
    run_threads(THREADS);
    long rss = ht_rss_kib();
    long address_space = ht_proc_number("/proc/self/status", "VmSize");
    run_threads(THREADS);
    // 1 KiB for each thread would show as 10 MiB.
    long grown = ht_rss_kib() - rss;
    HT_CHECK(grown < 8192, "%d threads left %ld KiB resident", THREADS, grown);
    grown = ht_proc_number("/proc/self/status", "VmSize") - address_space;
    HT_CHECK(grown < 64 * 1024, "%d threads left %ld KiB of address space", THREADS, grown);
    return 0;
}
