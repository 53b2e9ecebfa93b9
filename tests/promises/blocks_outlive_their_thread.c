// A block lives until it is freed, also if the thread that allocated it ends,
// and the blocks of later threads do not overlap it.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 40, BLOCKS = 500 };

struct note {
    unsigned char *bytes;
    size_t size;
};

static struct note notes[THREADS][BLOCKS];

static void *allocate(void *argument)
{
    size_t thread = (uintptr_t)argument;
    struct ht_random random = {thread};
    for (size_t i = 0; i < BLOCKS; i++) {
        struct note *note = &notes[thread][i];
        note->size = 1 + ht_random_size(&random, 60000);
        note->bytes = malloc(note->size);
        HT_CHECK(note->bytes != NULL, "malloc(%zu) failed", note->size);
        memset(note->bytes, (int)(thread + i) & 0xff, note->size);
    }
    return NULL;
}

static void check_and_free(size_t thread)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct note *note = &notes[thread][i];
        for (size_t j = 0; j < note->size; j++) {
            HT_CHECK(note->bytes[j] == (unsigned char)(thread + i),
                     "thread %zu's block changed after it ended",
                     thread);
        }
        free(note->bytes);
    }
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, allocate, (void *)(uintptr_t)i) == 0, "no thread");
        pthread_join(thread, NULL);
        if (i >= 8) {
            check_and_free(i - 8);
        }
    }
    for (size_t i = THREADS - 8; i < THREADS; i++) {
        check_and_free(i);
    }
    return 0;
}
