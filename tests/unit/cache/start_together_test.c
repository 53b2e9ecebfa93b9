// The first threads of a process that call malloc do so at the same moment. What one of them sets up, once, the others read
// without a lock. (ThreadSanitizer is the judge.) The end of each thread is noticed.
#include <pthread.h>
#include <sched.h>

#include "../census.h"

enum { THREADS = 4, CLASS = 6 };

static _Atomic(uint32_t) ready; // relaxed: it orders nothing

static void *begin(void *unused)
{
    hak_add_relaxed(&ready, 1);
    while (hak_load_relaxed(&ready) < THREADS) {
        sched_yield();
    }
    void *block = alloc(CLASS);
    UNIT_CHECK(block != NULL);
    give(block);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, begin, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    UNIT_CHECK(hak_registry.all != NULL);
    for (struct hak_cache *cache = hak_registry.all; cache != NULL; cache = cache->next) {
        UNIT_CHECK(!cache->owner.has_thread || cache->owner.state == HAK_OWNER_DEAD);
    }
    return 0;
}
