// not secure: there are no magazines, and each thread has a quarantine
// args in musl: 300
// sleeps
// native only
// preload only
// timeout: 120
// with features
// A thousand threads have once allocated much, and now do hardly any work: what each of
// them costs, beyond a thread that never allocated, falls to 64 KiB by itself. And what all magazines
// hold together is bounded, also while all of them are full.
#include "../support/api.h"
#include "../support/memory.h"

#include <pthread.h>

enum { MOST_THREADS = 1000, MOST_KIB = 64, BLOCKS = 5000, SWINGS = 6, TIMEOUT_MS = 60000 };

static pthread_t threads[MOST_THREADS];
static size_t thread_count = MOST_THREADS;
static pthread_barrier_t ready;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static void **blocks;
static volatile bool is_over;

static void swing(size_t size)
{
    for (int i = 0; i < SWINGS; i++) {
        ht_fill(blocks, BLOCKS, size);
        ht_free_all(blocks, BLOCKS);
    }
}

// One after the other, so that little is live at a time.
static void *live(void *works)
{
    if (works != NULL) {
        pthread_mutex_lock(&turn);
        swing(64);
        swing(1000);
        pthread_mutex_unlock(&turn);
    }
    pthread_barrier_wait(&ready);
    while (!is_over) {
        ht_sleep_ms(2000);
        if (works != NULL) {
            free(ht_hide(malloc(100)));
        }
    }
    return NULL;
}

static void start_all(void *works)
{
    is_over = false;
    pthread_barrier_init(&ready, NULL, (unsigned)thread_count + 1);
    for (size_t i = 0; i < thread_count; i++) {
        int error = pthread_create(&threads[i], NULL, live, works);
        HT_CHECK(error == 0, "no thread %zu: errno %d", i, error);
    }
    pthread_barrier_wait(&ready);
}

static void end_all(void)
{
    is_over = true;
    for (size_t i = 0; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        thread_count = strtoul(arguments[1], NULL, 10);
    }
    HT_CHECK(thread_count <= MOST_THREADS, "at most %d", (int)MOST_THREADS);
    HT_API(hak_stats_read);
    blocks = ht_map(BLOCKS * sizeof *blocks);
    const long before = ht_rss_kib();
    start_all(NULL);
    const long stacks = ht_rss_kib() - before;
    end_all();
    start_all(&ready);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    HT_CHECK(stats.cached_bytes <= 32 * HT_MIB,
             "%zu bytes in magazines of %zu threads",
             stats.cached_bytes,
             thread_count);
    ht_expect_rss(
        before + stacks + (long)thread_count * MOST_KIB, TIMEOUT_MS, "mostly idle threads");
    end_all();
    return 0;
}
