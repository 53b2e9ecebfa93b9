// static too
//
// A child that is forked while other threads allocate can allocate, free what the
// parent left, start threads and fork again; the parent goes on unharmed.
#include "../support/memory.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, FORKS = 60, BLOCKS = 200 };

static atomic_bool stop;
static void *left[BLOCKS];

static void churn(struct ht_random *random, int rounds)
{
    void *blocks[32] = {NULL};
    for (int i = 0; i < rounds; i++) {
        size_t slot = ht_random_below(random, 32);
        size_t size = ht_random_size(random, 300000);
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        HT_CHECK(blocks[slot] != NULL, "malloc(%zu) failed", size);
        memset(blocks[slot], 1, size < 100 ? size : 100);
    }
    for (size_t i = 0; i < 32; i++) {
        free(blocks[i]);
    }
}

static void *run(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    while (!atomic_load(&stop)) {
        churn(&random, 100);
    }
    return NULL;
}

static void *run_once(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    churn(&random, 300);
    return NULL;
}

static void use_heap_and_threads(uint64_t seed)
{
    struct ht_random random = {seed};
    alarm(20); // a lock that stayed taken at the fork would block us for ever
    ht_free_all(left, BLOCKS);
    churn(&random, 500);
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, run_once, (void *)(uintptr_t)(seed + i)) == 0,
                 "no thread in the child");
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    malloc_trim(0);
}

static void live_as_child(uint64_t seed)
{
    pid_t grandchild = fork();
    use_heap_and_threads(seed);
    if (grandchild != 0) {
        ht_wait_child(grandchild, "the child's child");
    }
    exit(0);
}

int main(void)
{
    ht_start();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i + 1)) == 0,
                 "no thread");
    }
    ht_fill(left, BLOCKS, 500);
    for (uint64_t i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            live_as_child(i);
        }
        ht_wait_child(child, "a child of a threaded program");
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ht_free_all(left, BLOCKS);
    return 0;
}
