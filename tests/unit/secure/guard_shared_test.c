// Threads without a cache of their own share one, and none of their blocks gets a guard, as no thread counts its calls there.
// (ThreadSanitizer is the judge.)
#include <pthread.h>

#include "../census.h"
#include "base/options.h"
#include "hakmem/hakmem.h"
#include "secure/guard.h"

enum { THREADS = 2, BLOCKS = 2000, BYTES = 100 };

static void *work(void *unused)
{
    become(&hak_cache_shared);
    for (unsigned i = 0; i < BLOCKS; i++) {
        void *block = hak_malloc(BYTES);
        UNIT_CHECK(block != NULL && !hak_guard_owns(block));
        hak_free(block);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    new_thread();
    hak_options.guard_sample = 10;
    bool is_guarded = false;
    for (unsigned i = 0; i < BLOCKS && !is_guarded; i++) {
        is_guarded = hak_guard_owns(hak_malloc(BYTES)); // the thread has a cache
    }
    UNIT_CHECK(is_guarded);
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
