// A thread that continues the search for ended threads where another one stopped finds a cache made since then complete, also if
// nothing else has ordered the two threads. (ThreadSanitizer is the judge.)
#include <pthread.h>
#include <sched.h>

#include "../census.h"
#include "cache/ended.h"

// More than one search visits, so that it ends at one of them.
enum { CACHES = 16, LOOKERS = 2 };

// Relaxed: it says whose turn it is, and orders nothing.
static _Atomic(uint32_t) turn;

static void *look(void *number)
{
    while (hak_load_relaxed(&turn) != (uintptr_t)number) {
        sched_yield();
    }
    hak_ended_look();
    hak_add_relaxed(&turn, 1);
    return NULL;
}

int main(void)
{
    pthread_t lookers[LOOKERS];
    new_thread();
    for (uintptr_t i = 0; i < LOOKERS; i++) {
        UNIT_EQUAL(pthread_create(&lookers[i], NULL, look, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < CACHES; i++) {
        UNIT_CHECK(hak_registry_get(HAK_ROLE_THREAD, NULL) != NULL);
    }
    hak_add_relaxed(&turn, 1);
    for (unsigned i = 0; i < LOOKERS; i++) {
        pthread_join(lookers[i], NULL);
    }
    UNIT_EQUAL(hak_registry.count, CACHES + 1);
    return 0;
}
