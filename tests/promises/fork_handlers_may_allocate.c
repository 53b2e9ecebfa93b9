// static too
//
// Handlers that a program registers with pthread_atfork may allocate and free, also if they were
// registered before main: while they run, the allocator holds no lock.
#include "../support/memory.h"

#include <pthread.h>

enum { BLOCKS = 3000, TIMEOUT_S = 20 };

static void *kept[BLOCKS];
static int calls;

static void use_heap(void)
{
    void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, 2000); // more than the magazines hold
    ht_free_all(kept, BLOCKS);
    memcpy(kept, blocks, sizeof kept);
    free(malloc(300000));
    calls++;
}

__attribute__((constructor)) static void ask_for_fork(void)
{
    HT_CHECK(pthread_atfork(use_heap, use_heap, use_heap) == 0, "no handlers");
}

static void *allocate_for_ever(void *nothing)
{
    for (;;) {
        free(ht_hide(malloc(100)));
    }
    return nothing;
}

int main(void)
{
    ht_start();
    alarm(TIMEOUT_S); // a handler that waits for a lock would wait for ever
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, allocate_for_ever, NULL) == 0, "no thread");
    for (int i = 1; i <= 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            HT_CHECK(calls == 2 * i, "%d handlers ran, not %d", calls, 2 * i);
            exit(0);
        }
        ht_wait_child(child, "a child");
        HT_CHECK(calls == 2 * i, "%d handlers ran, not %d", calls, 2 * i);
    }
    return 0;
}
