// glibc only: what another C library writes to at fork is its own affair
// native only
// A program with many sleeping threads forks, again and again: each fork costs its parent a few page faults, not one for each
// thread.
#include "../support/promise.h"

#include <pthread.h>
#include <sys/resource.h>

enum { THREADS = 500, TRIES = 3, STACK_BYTES = 128 * 1024 };

static pthread_barrier_t barrier;

static void *allocate_and_sleep(void *unused)
{
    char *block = malloc(100);
    HT_CHECK(block != NULL, "malloc failed");
    block[0] = 1;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); // until the program ends
    free(block);
    return unused;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static long faults_of_fork(void)
{
    const long before = faults();
    const pid_t child = fork();
    if (child == 0) {
        free(malloc(100));
        _exit(0);
    }
    const long after = faults();
    ht_wait_child(child, "a child");
    return after - before;
}

int main(void)
{
    ht_start();
    pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], &small, allocate_and_sleep, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&barrier);
    faults_of_fork(); // written pages are writable before it, copy-on-write after it
    long least = faults_of_fork();
    for (size_t i = 1; i < TRIES; i++) {
        const long more = faults_of_fork();
        least = more < least ? more : least;
    }
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(least < THREADS / 2, "%ld page faults beside %d threads", least, THREADS);
    return 0;
}
