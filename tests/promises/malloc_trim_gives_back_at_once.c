// serial
// native only
// malloc_trim(0) gives free memory back before it returns: that of its own thread,
// of an idle thread, and blocks that were freed for an idle owner.
#include "../support/peak.h"

#include <pthread.h>

enum { SIZES = 5, MOST_KIB = 4096 };

static const size_t sizes[SIZES] = {32, 800, 5000, 200000, 3000000};
static pthread_barrier_t barrier;
static void **blocks[SIZES];
static size_t counts[SIZES];

static void fill(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        ht_fill(blocks[i], counts[i], sizes[i]);
    }
}

static void free_them(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        ht_shuffle(blocks[i], counts[i], i);
        ht_free_all(blocks[i], counts[i]);
    }
}

static void *other_thread(void *unused)
{
    fill();
    free_them();
    pthread_barrier_wait(&barrier); // freed here, trimmed by main
    pthread_barrier_wait(&barrier);
    fill();
    pthread_barrier_wait(&barrier); // to be freed and trimmed by main
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < SIZES; i++) {
        counts[i] = 16 * HT_MIB / sizes[i];
        blocks[i] = ht_map(counts[i] * sizeof *blocks[i]);
    }
    pthread_barrier_init(&barrier, NULL, 2);
    long baseline = ht_rss_kib();
    fill();
    free_them();
    malloc_trim(0);
    ht_expect_rss(baseline + MOST_KIB, 0, "trim after this thread's frees");

    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_barrier_wait(&barrier);
    malloc_trim(0);
    ht_expect_rss(baseline + MOST_KIB, 0, "trim after an idle thread's frees");
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    free_them();
    malloc_trim(0);
    ht_expect_rss(baseline + MOST_KIB, 0, "trim after frees for an idle owner");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
