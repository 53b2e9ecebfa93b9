// serial
// native only
// static too
// not secure: blocks wait in quarantine, and with a block there its page
// Of what ended threads leave behind, as little stays at once as of the last thread's own memory.
#include "../support/peak.h"

#include <pthread.h>

enum { BYTES = 64 * HT_MIB, LIVES = 3, THREADS = 8 };

static const struct sizes {
    uint32_t smallest, largest;
} small = {16, 1024}, mid = {1024, 32768};

struct worker {
    const struct sizes *sizes;
    size_t count;
    void **blocks;
    uint32_t draws;
    pthread_barrier_t *all_have_filled; // NULL: another thread frees
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct sizes *sizes = worker->sizes;
    for (size_t i = 0; i < worker->count; i++) {
        worker->draws = worker->draws * 1664525 + 1013904223; // Numerical Recipes' generator
        const size_t size =
            sizes->smallest + (worker->draws >> 8) % (sizes->largest - sizes->smallest + 1);
        worker->blocks[i] = malloc(size);
        HT_CHECK(worker->blocks[i] != NULL, "no block of %zu", size);
        memset(worker->blocks[i], 1, size);
    }
    if (worker->all_have_filled != NULL) {
        pthread_barrier_wait(worker->all_have_filled);
        ht_free_all(worker->blocks, worker->count);
    }
    return NULL;
}

// One thread after the other fills, and main frees.
static void one_after_the_other(void)
{
    struct worker worker = {.sizes = &small, .count = BYTES / small.largest * 2, .draws = 1};
    worker.blocks = ht_map(worker.count * sizeof *worker.blocks);
    const long baseline = ht_rss_kib();
    for (unsigned life = 1; life <= LIVES; life++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, work, &worker) == 0, "no thread");
        HT_CHECK(pthread_join(thread, NULL) == 0, "no join");
        ht_free_all(worker.blocks, worker.count);
        ht_expect_rss(ht_fallen_kib(baseline, 0), 0, "freed by the last thread");
    }
}

// Several fill at the same time, and free their blocks.
static void side_by_side(void)
{
    struct worker workers[THREADS];
    pthread_barrier_t all_have_filled;
    pthread_barrier_init(&all_have_filled, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.sizes = &mid,
                                     .count = BYTES / THREADS / mid.largest * 2,
                                     .draws = i,
                                     .all_have_filled = &all_have_filled};
        workers[i].blocks = ht_map(workers[i].count * sizeof *workers[i].blocks);
    }
    const long baseline = ht_rss_kib();
    for (unsigned life = 1; life <= LIVES; life++) {
        pthread_t threads[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
            HT_CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
        }
        for (unsigned i = 0; i < THREADS; i++) {
            HT_CHECK(pthread_join(threads[i], NULL) == 0, "no join");
        }
        ht_expect_rss(ht_fallen_kib(baseline, 0), 0, "freed by threads that have ended");
    }
}

int main(void)
{
    ht_start();
    one_after_the_other();
    malloc_trim(0);
    side_by_side();
    return 0;
}
