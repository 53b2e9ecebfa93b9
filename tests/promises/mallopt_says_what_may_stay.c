// native only
// not secure: a large block has a mapping of its own, which ends with it
// mallopt(M_TRIM_THRESHOLD, -1): free memory stays until malloc_trim. With n instead of -1, n bytes may wait. In a program with one
// thread, and beside another thread, where hakmem has one of its own. What mallopt cannot do, it refuses.
#include "../support/memory.h"

#include <malloc.h>
#include <pthread.h>

enum { LARGE = 640, SMALL = 64 * 1024, LARGE_BYTES = 100 * 1024, SMALL_BYTES = 1000 };
enum { BOTH_KIB = (LARGE * LARGE_BYTES + SMALL * SMALL_BYTES) / 1024 }; // 64,000 and 64,000
static void *large[LARGE];
static void *small[SMALL];
static long before;

static void swing(int threshold)
{
    HT_CHECK(mallopt(M_TRIM_THRESHOLD, threshold) == 1, "a threshold of %d refused", threshold);
    ht_fill(large, LARGE, LARGE_BYTES);
    ht_fill(small, SMALL, SMALL_BYTES);
    ht_free_all(large, LARGE);
    ht_free_all(small, SMALL);
}

static void expect_all_is_here(int threshold)
{
    const long rss = ht_rss_kib();
    HT_CHECK(rss > before + BOTH_KIB / 10 * 9,
             "threshold %d: of %d KiB %ld stayed",
             threshold,
             BOTH_KIB,
             rss - before);
}

static void check_all(void)
{
    swing(1 << 30);
    expect_all_is_here(1 << 30);
    swing(1 << 20);
    ht_expect_rss(before + 9 * 1024, 5000, "a threshold of 1 MiB");

    swing(-1);
    for (int i = 0; i < 15; i++) { // a program with one thread gives back when it frees
        ht_sleep_ms(100);
        void *block = malloc(200 * HT_KIB);
        free(malloc(300 * HT_KIB));
        free(block);
    }
    expect_all_is_here(-1);
    malloc_trim(0);
    ht_expect_rss(before + 8 * 1024, 0, "malloc_trim after a threshold of -1");
    swing(1 << 20);
    ht_expect_rss(before + 9 * 1024, 5000, "a threshold after -1");
}

static void *other_thread(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

int main(void)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    ht_start();
    free(malloc(1));
    before = ht_rss_kib();
    check_all();
    pthread_barrier_init(&barrier, NULL, 2);
    HT_CHECK(pthread_create(&thread, NULL, other_thread, &barrier) == 0, "no thread");
    check_all();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);

    HT_CHECK(mallopt(M_TOP_PAD, 1 << 20) == 1, "M_TOP_PAD refused");
    HT_CHECK(mallopt(M_PERTURB, 0) == 1, "no filling refused");
    HT_CHECK(mallopt(M_PERTURB, 0xa5) == 0, "filling promised, which is not done");
    return 0;
}
