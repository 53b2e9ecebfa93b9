// threads.c -- threads: their work, their ends, and what they leave behind, by their number.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

static pthread_barrier_t gate;

static void gate_for(size_t count)
{
    pthread_barrier_init(&gate, NULL, (unsigned)count);
}

// 50 blocks, which are freed once all threads have theirs.
static void *meet(void *member)
{
    enum { BLOCKS = 50 };
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(scale_block(16 + i * 50), 1, 16 + i * 50);
    }
    pthread_barrier_wait(&gate);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return member;
}

// In microseconds of processor time for each thread.
static void end(size_t threads)
{
    gate_for(threads + 1);
    const uint64_t begin = scale_cpu_ns();
    struct scale_crew *crew = scale_start(threads, meet, NULL, 0);
    const uint64_t made = scale_cpu_ns();
    pthread_barrier_wait(&gate);
    scale_join(crew);
    scale_point("threads-start", scale_each(made - begin, threads) / 1e3);
    scale_point("threads-end", scale_each(scale_cpu_ns() - made, threads) / 1e3);
}

struct worker {
    size_t pairs;
    uint64_t stream;
    uint64_t spent_ns;
} __attribute__((aligned(128)));

static void *work(void *member)
{
    enum { LIVE = 100 };
    struct worker *worker = member;
    struct prng prng = prng_seed(5, worker->stream);
    void *blocks[LIVE] = {NULL};
    pthread_barrier_wait(&gate);
    const uint64_t begin = scale_thread_ns();
    for (size_t i = 0; i < worker->pairs; i++) {
        void **place = &blocks[prng_below(&prng, LIVE)];
        free(*place);
        *place = scale_block(prng_between(&prng, 16, 1024));
    }
    worker->spent_ns = scale_thread_ns() - begin;
    for (size_t i = 0; i < LIVE; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void at_work(size_t threads)
{
    enum { PAIRS = 4000000 };
    struct worker *workers = report_table(threads, sizeof *workers);
    for (size_t i = 0; i < threads; i++) {
        workers[i].pairs = PAIRS / threads;
        workers[i].stream = i;
    }
    gate_for(threads);
    scale_join(scale_start(threads, work, workers, sizeof *workers));
    uint64_t spent = 0;
    for (size_t i = 0; i < threads; i++) {
        spent += workers[i].spent_ns;
    }
    scale_point("threads-at-work", scale_each(spent, PAIRS / threads * threads));
}

// Milliseconds of processor time in a second: once the threads have ended, while nothing happens, and while
// large blocks come and go, which keeps the thread that gives memory back at work.
static void ended(size_t threads)
{
    enum { SECONDS = 2, BLOCK = 3 << 20, A_SECOND = 10 };
    gate_for(threads);
    scale_join(scale_start(threads, meet, NULL, 0));
    const uint64_t begin = scale_cpu_ns();
    scale_sleep_ms(1000 * SECONDS);
    const uint64_t idle = scale_cpu_ns();
    for (unsigned i = 0; i < SECONDS * A_SECOND; i++) {
        free(memset(scale_block(BLOCK), 1, BLOCK));
        scale_sleep_ms(1000 / A_SECOND);
    }
    scale_point("idle-second", scale_each(idle - begin, SECONDS) / 1e6);
    scale_point("quiet-second", scale_each(scale_cpu_ns() - idle, SECONDS) / 1e6);
}

static void *work_once(void *member)
{
    enum { BLOCKS = 200, LEAST = 16, MOST = 2048 };
    struct prng prng = prng_seed(6, 0);
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t bytes = prng_between(&prng, LEAST, MOST);
        blocks[i] = memset(scale_block(bytes), 1, bytes);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    pthread_barrier_wait(&gate); // all have freed
    pthread_barrier_wait(&gate); // all have been measured
    return member;
}

// KiB that stay for each thread, its stack included.
static void asleep(size_t threads)
{
    gate_for(threads + 1);
    const double before = (double)report_resident_kib();
    struct scale_crew *crew = scale_start(threads, work_once, NULL, 0);
    pthread_barrier_wait(&gate);
    scale_point("asleep-at-once", ((double)report_resident_kib() - before) / (double)threads);
    scale_sleep_ms(6000);
    scale_point("asleep-after-6-s", ((double)report_resident_kib() - before) / (double)threads);
    pthread_barrier_wait(&gate);
    scale_join(crew);
}

const struct scale_subject scale_subjects[] = {
    {"end", end},
    {"at-work", at_work},
    {"ended", ended},
    {"asleep", asleep},
    {NULL, NULL},
};
