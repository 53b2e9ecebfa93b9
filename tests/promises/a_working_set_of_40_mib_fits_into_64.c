// serial
// native only
// A program with 40 MiB in use, whose blocks come and go in three threads and
// whose sizes change from phase to phase, never holds more than 64 MiB: it
// lives in a container of that size.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 3, PHASES = 6, MIB_OF_EACH = 13, MOST_MIB = 64 };

static const size_t sizes[PHASES][2] = {
    {16, 100}, {100, 2000}, {2000, 30000}, {30, 60}, {30000, 300000}, {500, 1500}};

static void *live_through_phases(void *argument)
{
    struct ht_random random = {(uintptr_t)argument};
    size_t most = MIB_OF_EACH * HT_MIB / 16;
    static const size_t note_bytes = sizeof(void *);
    // A note of each block costs as much as the smallest: not counted as ours.
    void **blocks =
        mmap(NULL, most * note_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(blocks != MAP_FAILED, "no memory for notes");
    for (size_t phase = 0; phase < PHASES; phase++) {
        size_t low = sizes[phase][0];
        size_t range = sizes[phase][1] - low;
        size_t count = MIB_OF_EACH * HT_MIB / (low + range / 2);
        for (size_t i = 0; i < count; i++) {
            size_t size = low + ht_random_below(&random, range);
            blocks[i] = malloc(size);
            HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
            memset(blocks[i], 1, size);
        }
        for (size_t i = 0; i < count; i++) {
            size_t slot = ht_random_below(&random, count);
            size_t size = low + ht_random_below(&random, range);
            free(blocks[slot]);
            blocks[slot] = malloc(size);
            HT_CHECK(blocks[slot] != NULL, "malloc(%zu) failed", size);
            memset(blocks[slot], 1, size);
        }
        ht_shuffle(blocks, count, phase);
        ht_free_all(blocks, count);
        madvise(blocks, most * note_bytes, MADV_DONTNEED);
    }
    munmap(blocks, most * note_bytes);
    return NULL;
}

int main(void)
{
    ht_start();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(
            pthread_create(&threads[i], NULL, live_through_phases, (void *)(uintptr_t)(i + 1)) == 0,
            "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    // The smallest blocks' notes: 39 MiB of blocks of 58 bytes on average, 45 later.
    long notes = (long)(THREADS * MIB_OF_EACH * HT_MIB / 45 * sizeof(void *) / HT_KIB);
    long peak = ht_peak_rss_kib() - notes;
    HT_CHECK(
        peak <= MOST_MIB * 1024, "%ld KiB at the peak, promised at most %d MiB", peak, MOST_MIB);
    return 0;
}
