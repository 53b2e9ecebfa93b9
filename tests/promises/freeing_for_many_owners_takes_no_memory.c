// static too
// native only
// One thread frees small blocks of many other, sleeping threads, one of each in turn: the process does not grow because of it, and
// the owners can use again what has gone back to them.
#include "../support/memory.h"

#include <pthread.h>

enum { OWNERS = 64, EACH = 16384, BYTES = 16, MOST_KIB = 16384 };

static void **blocks[OWNERS];
static pthread_barrier_t made;
static pthread_barrier_t freed;

static void *own(void *mine)
{
    void **row = mine;
    for (size_t i = 0; i < EACH; i++) {
        row[i] = malloc(BYTES);
        HT_CHECK(row[i] != NULL, "no memory");
        memset(row[i], 1, BYTES);
    }
    pthread_barrier_wait(&made);
    pthread_barrier_wait(&freed);
    for (size_t i = 0; i < EACH; i++) {
        row[i] = malloc(BYTES);
    }
    for (size_t i = 0; i < EACH; i++) {
        free(row[i]);
    }
    return NULL;
}

int main(void)
{
    ht_start();
    pthread_t threads[OWNERS];
    pthread_barrier_init(&made, NULL, OWNERS + 1);
    pthread_barrier_init(&freed, NULL, OWNERS + 1);
    for (size_t i = 0; i < OWNERS; i++) {
        blocks[i] = ht_map(EACH * sizeof *blocks[i]);
        const int error = pthread_create(&threads[i], NULL, own, blocks[i]);
        HT_CHECK(error == 0, "no thread: errno %d", error);
    }
    pthread_barrier_wait(&made);
    const long before = ht_rss_kib();
    for (size_t i = 0; i < EACH; i++) {
        for (size_t j = 0; j < OWNERS; j++) {
            free(blocks[j][i]);
        }
    }
    const long after = ht_rss_kib();
    HT_CHECK(after <= before + MOST_KIB, "%ld KiB before the frees, %ld after", before, after);
    pthread_barrier_wait(&freed);
    for (size_t i = 0; i < OWNERS; i++) {
        pthread_join(threads[i], NULL);
    }
    const long again = ht_rss_kib();
    HT_CHECK(
        again <= before + MOST_KIB, "%ld KiB before, %ld when all was in use again", before, again);
    return 0;
}
