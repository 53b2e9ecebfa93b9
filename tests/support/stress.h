// stress.h -- what the programs in tests/stress share.
//
// The arguments of each: <most threads> <operations for each thread> <seed>; seed 0 takes
// one from the clock. The program prints them, so that a failure can be
// repeated. Exit codes as in promise.h.
#ifndef HAK_TESTS_SUPPORT_STRESS_H
#define HAK_TESTS_SUPPORT_STRESS_H

#include "promise.h"
#include "random.h"

#include <pthread.h>
#include <stdatomic.h>

struct ht_stress {
    size_t threads;
    size_t operations;
    uint64_t seed;
};

// A program that takes this process's place and ends at once: this one again, as others may have another C library.
#define HT_ENDS "ends at once"

_Noreturn static inline void ht_run_what_ends(void)
{
    execl("/proc/self/exe", HT_ENDS, (char *)NULL);
    _exit(127);
}

static inline struct ht_stress ht_stress_start(int count, char **arguments)
{
    if (strcmp(arguments[0], HT_ENDS) == 0) {
        exit(0);
    }
    struct ht_stress stress = {4, 10000, 1};
    stress.threads = count > 1 ? strtoul(arguments[1], NULL, 10) : stress.threads;
    stress.operations = count > 2 ? strtoul(arguments[2], NULL, 10) : stress.operations;
    stress.seed = count > 3 ? strtoull(arguments[3], NULL, 10) : stress.seed;
    if (stress.seed == 0) {
        stress.seed = (uint64_t)ht_now_ms();
    }
    ht_start();
    printf("%zu threads, %zu operations each, seed %llu\n",
           stress.threads,
           stress.operations,
           (unsigned long long)stress.seed);
    fflush(stdout);
    return stress;
}

// One thread's share of the work, with random numbers of its own.
struct ht_worker {
    pthread_t thread;
    size_t index;
    size_t operations;
    struct ht_random random;
};

// Run `work` in `count` threads, at most HT_MOST_THREADS, and wait for them.
enum { HT_MOST_THREADS = 64 };
static pthread_barrier_t ht_barrier;

static inline void ht_run_threads(const struct ht_stress *stress,
                                  size_t count,
                                  void *(*work)(void *worker))
{
    static struct ht_worker workers[HT_MOST_THREADS];
    HT_CHECK(count <= HT_MOST_THREADS, "at most %d threads", HT_MOST_THREADS);
    pthread_barrier_init(&ht_barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        workers[i].index = i;
        workers[i].operations = stress->operations;
        workers[i].random.state = stress->seed * 1000003 + count * 101 + i;
        int error = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        HT_CHECK(error == 0, "no thread %zu: errno %d", i, error);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    pthread_barrier_destroy(&ht_barrier);
}

// Wait for all the threads of this run.
static inline void ht_meet(void)
{
    pthread_barrier_wait(&ht_barrier);
}

// With 1, 4, 16 ... threads, up to the number in the arguments.
static inline void ht_run_rising_threads(const struct ht_stress *stress,
                                         void *(*work)(void *worker))
{
    size_t count = 1;
    while (count < stress->threads) {
        ht_run_threads(stress, count, work);
        count *= 4;
    }
    ht_run_threads(stress, stress->threads, work);
}

#endif
