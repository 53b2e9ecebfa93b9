// serial
// native only
// Memory whose owner sleeps or has ended, once freed by others, serves the next
// request of any thread: that need not wait for the owner, nor for time to pass.
#include "../support/memory.h"

#include <pthread.h>

enum { SIZES = 3, MIB_OF_EACH = 24 };

static const size_t sizes[SIZES] = {64, 1000, 12000};
static void **blocks[SIZES];
static size_t counts[SIZES];
static pthread_barrier_t barrier;

static void fill(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        ht_fill(blocks[i], counts[i], sizes[i]);
    }
}

static void free_them(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        ht_free_all(blocks[i], counts[i]);
    }
}

static void *fill_and_end(void *unused)
{
    fill();
    return unused;
}

static void *fill_and_idle(void *unused)
{
    fill();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

// One working set has gone through the heap already; another may add a third. The two threads may have shards of their own
// (0030), each with a partly used superslab.
static void check(long baseline, const char *what)
{
    long most = baseline + SIZES * MIB_OF_EACH * 1024 * 4 / 3 + 8192;
    long rss = ht_rss_kib();
    HT_CHECK(rss <= most, "%s: %ld KiB resident, promised at most %ld", what, rss, most);
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < SIZES; i++) {
        counts[i] = MIB_OF_EACH * HT_MIB / sizes[i];
        blocks[i] = ht_map(counts[i] * sizeof *blocks[i]);
    }
    pthread_barrier_init(&barrier, NULL, 2);
    long baseline = ht_rss_kib();
    pthread_t thread;

    pthread_create(&thread, NULL, fill_and_end, NULL);
    pthread_join(thread, NULL);
    free_them();
    fill();
    check(baseline, "after a dead owner");
    free_them();

    pthread_create(&thread, NULL, fill_and_idle, NULL);
    pthread_barrier_wait(&barrier);
    free_them();
    fill();
    check(baseline, "beside an idle owner");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    free_them();
    return 0;
}
