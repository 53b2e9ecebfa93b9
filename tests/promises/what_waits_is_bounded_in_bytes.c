// serial
// native only
// env: HAKMEM_DIRTY_BYTES=8M HAKMEM_MAGAZINE_BYTES=1M HAKMEM_DECAY_MS=3600000
// The bytes of waiting free memory are bounded, too: with a budget of 8 MiB, and a
// decay time that never ends, no more than that stays resident, whatever the sizes.
// A thread's magazines wait beside it. Four threads: each could keep a freed
// large block of each size for itself.
#include "../support/peak.h"

#include <pthread.h>

enum { SIZES = 5, THREADS = 4 };

static pthread_barrier_t freed;
static pthread_barrier_t finished;

static void *keep_large_blocks(void *unused)
{
    for (size_t size = 64 * HT_KIB; size <= 4 * HT_MIB; size *= 2) {
        void *block = malloc(size);
        HT_CHECK(block != NULL, "malloc(%zu) failed", size);
        memset(block, 1, size);
        free(block);
    }
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&finished);
    return unused;
}

static void check_threads(void)
{
    long baseline = ht_rss_kib();
    pthread_t threads[THREADS];
    pthread_barrier_init(&freed, NULL, THREADS + 1);
    pthread_barrier_init(&finished, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        int error = pthread_create(&threads[i], NULL, keep_large_blocks, NULL);
        HT_CHECK(error == 0, "no thread: errno %d", error);
    }
    pthread_barrier_wait(&freed);
    ht_expect_rss(baseline + (8 + 4) * 1024, HT_FALL_MS, "threads freed large blocks");
    pthread_barrier_wait(&finished);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    ht_start();
    check_threads();
    static const size_t sizes[SIZES] = {64, 1000, 20000, 100000, 3000000};
    const size_t total = 96 * HT_MIB;
    void **blocks = ht_map(total / sizes[0] * sizeof *blocks);
    for (size_t i = 0; i < SIZES; i++) {
        size_t count = total / sizes[i];
        free(ht_hide(malloc(sizes[i])));
        long baseline = ht_rss_kib();
        ht_fill(blocks, count, sizes[i]);
        ht_shuffle(blocks, count, i);
        ht_free_all(blocks, count);
        char what[64];
        snprintf(what, sizeof what, "all blocks of %zu freed", sizes[i]);
        // In mode secure quarantined blocks keep their slabs: inside these the budget's bytes may wait once more.
        const long inside_kib = ht_held_back_kib() != 0 ? 8 * 1024 : 0;
        const long most_kib = baseline + (8 + 1 + 4) * 1024 + ht_held_back_kib() + inside_kib;
        ht_expect_rss(most_kib, HT_FALL_MS, what);
    }
    return 0;
}
