// glibc only: what is registered while a program is relocated takes an IFUNC
//
// A program, or a library that it needs, may register handlers for fork before any constructor of ours has run. The handlers may
// take a lock whose holder is in malloc, also where the archive is linked in.
#include "../support/memory.h"

#include <pthread.h>

enum { FORKS = 30, BLOCKS = 300, TIMEOUT_S = 30 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool ends;

static void take(void)
{
    pthread_mutex_lock(&lock);
}

static void drop(void)
{
    pthread_mutex_unlock(&lock);
}

static void ask_for_fork(void)
{
    HT_CHECK(pthread_atfork(take, drop, drop) == 0, "no handlers");
}

// Called before the constructors of all libraries except one that is linked to be the first.
__attribute__((section(".preinit_array"),
               used)) static void (*const before_all)(void) = ask_for_fork;

static void *allocate_with_lock(void *unused)
{
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        void *blocks[BLOCKS];
        take();
        ht_fill(blocks, BLOCKS, 20000);
        ht_free_all(blocks, BLOCKS);
        drop();
    }
    return unused;
}

int main(void)
{
    ht_start();
    alarm(TIMEOUT_S); // a handler that waits would wait for ever
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, allocate_with_lock, NULL) == 0, "no thread");
    for (int i = 0; i < FORKS; i++) {
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100000));
            _exit(0);
        }
        ht_wait_child(child, "a child");
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    return 0;
}
