// preload only
// native only
// env: HAKMEM_MODE=learning HAKMEM_DECAY_MS=777
// not secure: it runs itself in a mode of its own
// with features
// In mode learning the learner starts when the heap has grown, is shown as the source of what it sets, and
// does not change what the user has set.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../support/options.h"

enum { BLOCKS = 20000, BYTES = 1000, WAIT_MS = 50000 };

static char *blocks[BLOCKS];
static pthread_barrier_t turn;

// This thread frees the other thread's blocks: on any machine their way back is a part of the work that the learner can change.
static void *free_all(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&turn);
        for (size_t i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void work(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        HT_CHECK(blocks[i] != NULL, "no memory");
        memset(blocks[i], 1, BYTES);
    }
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
}

static bool is_the_learners(const char *option)
{
    return strcmp(ht_option_info(option).source, "learner") == 0;
}

int main(void)
{
    ht_start();
    HT_CHECK(ht_option_info("elo").value == 1, "the mode does not switch the learner on");
    pthread_t other;
    pthread_barrier_init(&turn, NULL, 2);
    const int error = pthread_create(&other, NULL, free_all, NULL);
    HT_CHECK(error == 0, "no thread: errno %d", error);
    const long end = ht_now_ms() + WAIT_MS;
    while (!is_the_learners("debug_timing") ||
           (!is_the_learners("parcel_bytes") && !is_the_learners("magazine_bytes"))) {
        HT_CHECK(ht_now_ms() < end, "the learner has set nothing");
        work();
        const struct hak_option_info decay = ht_option_info("decay_ms");
        HT_CHECK(decay.value == 777 && strcmp(decay.source, "environment") == 0,
                 "the learner has changed what the environment says: %zu, %s",
                 (size_t)decay.value,
                 decay.source);
    }
    return 0;
}
