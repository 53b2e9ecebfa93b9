// with features
// its names for all
// The function that hak_visit_blocks calls may fork, also beside other threads: it holds all locks already.
#include "../support/api.h"
#include "../support/promise.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 2, WAIT_S = 20 };

static atomic_bool is_over;
static unsigned forks;

static void *allocate(void *unused)
{
    while (!is_over) {
        free(malloc(100));
    }
    return unused;
}

static bool see(void *block, size_t bytes, void *argument)
{
    (void)block;
    (void)bytes;
    (void)argument;
    const pid_t child = fork();
    if (child == 0) {
        char *own = malloc(100);
        _exit(own == NULL || memset(own, 1, 100) != own);
    }
    ht_wait_child(child, "a visitor's child");
    return ++forks < 3;
}

int main(void)
{
    ht_start();
    HT_API(hak_visit_blocks);
    pthread_t threads[THREADS];
    void *volatile blocks[] = {malloc(10), malloc(1000), malloc(100000)};
    alarm(WAIT_S);
    for (unsigned i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0, "no thread");
    }
    api_hak_visit_blocks(NULL, see, NULL);
    HT_CHECK(forks == 3, "%u forks", forks);
    const pid_t child = fork(); // with all locks, as any other fork
    if (child == 0) {
        free(blocks[2]);
        _exit(malloc(2000) == NULL);
    }
    ht_wait_child(child, "a child");
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        free(blocks[i]);
    }
    return 0;
}
