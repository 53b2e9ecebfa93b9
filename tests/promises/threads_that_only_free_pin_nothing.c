// serial
// native only
// One thread allocates for ever, another only frees: memory stays near the
// working set, as the first can use at once what the second frees.
#include "../support/memory.h"

#include <pthread.h>
#include <stdatomic.h>

enum { RING = 1 << 14, TOTAL = 3000000 };

static _Atomic(void *) ring[RING];

static void *only_free(void *unused)
{
    for (size_t i = 0; i < TOTAL; i++) {
        void *block;
        while ((block = atomic_exchange(&ring[i % RING], NULL)) == NULL) {
            sched_yield();
        }
        free(block);
    }
    return unused;
}

int main(void)
{
    ht_start();
    struct ht_random random = {11};
    long baseline = ht_rss_kib();
    pthread_t freer;
    pthread_create(&freer, NULL, only_free, NULL);
    size_t largest = 2000;
    for (size_t i = 0; i < TOTAL; i++) {
        size_t size = 16 + ht_random_below(&random, largest - 16);
        unsigned char *block = malloc(size);
        HT_CHECK(block != NULL, "malloc(%zu) failed", size);
        block[0] = 1;
        block[size - 1] = 1;
        while (atomic_load(&ring[i % RING]) != NULL) {
            sched_yield();
        }
        atomic_store(&ring[i % RING], block);
    }
    long rss = ht_rss_kib();
    pthread_join(freer, NULL);
    // At most 16,384 blocks of 1,008 bytes on average are in flight: 16 MiB. 3 GB pass through.
    long most = baseline + 2 * RING * 1008 / 1024 + 8 * 1024;
    HT_CHECK(rss <= most, "%ld KiB resident, promised at most %ld", rss, most);
    return 0;
}
