// crowd.h -- a few threads that allocate, check their blocks and free them; some blocks are another thread's.
#ifndef HAK_TESTS_SUPPORT_CROWD_H
#define HAK_TESTS_SUPPORT_CROWD_H

#include "model.h"

#include <pthread.h>

enum { HT_CROWD = 4, HT_CROWD_SLOTS = 120, HT_CROWD_LARGEST = 3 << 20, HT_CROWD_LEFT = 64 };

static void *ht_crowd_left[HT_CROWD_LEFT]; // blocks that any thread may take

static inline void *ht_crowd_work(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    struct ht_slot slots[HT_CROWD_SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < 1500; i++) {
        ht_slot_step(&slots[ht_random_below(&random, HT_CROWD_SLOTS)], &random, HT_CROWD_LARGEST);
        void *mine = malloc(1 + i % 700);
        HT_CHECK(mine != NULL, "malloc failed");
        free(__atomic_exchange_n(&ht_crowd_left[i % HT_CROWD_LEFT], mine, __ATOMIC_ACQ_REL));
    }
    for (size_t i = 0; i < HT_CROWD_SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL;
}

// Run all of the threads, the caller as one of them; then free everything.
static inline void ht_crowd_run(void)
{
    pthread_t threads[HT_CROWD];
    for (uintptr_t i = 1; i < HT_CROWD; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, ht_crowd_work, (void *)(i + 1)) == 0,
                 "no thread");
    }
    ht_crowd_work((void *)1);
    for (size_t i = 1; i < HT_CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < HT_CROWD_LEFT; i++) {
        free(__atomic_exchange_n(&ht_crowd_left[i], NULL, __ATOMIC_ACQ_REL));
    }
}

#endif
