// whole.c -- operations on the whole heap or the whole process: malloc_trim, mallinfo2, fork.
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale.h"
#include "support/report.h"

static double trim_ms(void)
{
    const uint64_t begin = scale_cpu_ns();
    malloc_trim(0);
    return (double)(scale_cpu_ns() - begin) / 1e6;
}

// Unwritten blocks of 2 KiB, of which each 32nd is freed: that frees hardly a whole page.
static void trim(size_t mib)
{
    enum { BYTES = 2048, EACH = 32, READS = 10 };
    const size_t count = (mib << 20) / BYTES;
    void **some = report_table(count / EACH, sizeof *some);
    for (size_t i = 0; i < count; i++) {
        void *block = malloc(BYTES);
        if (block == NULL) {
            report_exhausted("malloc returned NULL");
        }
        if (i % EACH == 7) {
            some[i / EACH] = block;
        }
    }
    for (size_t i = 0; i < count / EACH; i++) {
        free(some[i]);
    }
    if (scale_owns("malloc_trim")) {
        scale_point("trim", trim_ms());
        scale_point("trim-again", trim_ms());
    }
    if (scale_owns("mallinfo2")) {
        volatile size_t used = 0;
        const uint64_t begin = scale_cpu_ns();
        for (unsigned i = 0; i < READS; i++) {
            used = mallinfo2().uordblks;
        }
        (void)used;
        scale_point("mallinfo2", scale_each(scale_cpu_ns() - begin, READS) / 1e3);
    }
}

// Microseconds until fork returns, and until the child has made its first pair of calls and ended: the least of
// several measurements.
static void forks(const char *parent, const char *child)
{
    enum { FORKS = 10 };
    uint64_t best_parent = UINT64_MAX;
    uint64_t best_child = UINT64_MAX;
    for (unsigned i = 0; i < FORKS; i++) {
        const uint64_t begin = report_clock_ns();
        const pid_t pid = fork();
        if (pid == 0) {
            free(scale_block(100));
            _exit(0);
        }
        const uint64_t forked = report_clock_ns();
        if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
            report_exhausted("fork failed");
        }
        const uint64_t ended = report_clock_ns();
        best_parent = forked - begin < best_parent ? forked - begin : best_parent;
        best_child = ended - begin < best_child ? ended - begin : best_child;
    }
    scale_point(parent, (double)best_parent / 1e3);
    scale_point(child, (double)best_child / 1e3);
}

static void fork_heap(size_t mib)
{
    enum { BYTES = 1024 };
    for (size_t i = 0; i < (mib << 20) / BYTES; i++) {
        scale_block(BYTES); // stays until the end
    }
    forks("fork-heap", "fork-heap-child");
}

static pthread_barrier_t gate;

static void *stay(void *member)
{
    enum { BLOCKS = 50 };
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = scale_block(16 + i * 50);
    }
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return member;
}

static void fork_threads(size_t threads)
{
    pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
    scale_start(threads, stay, NULL, 0);
    pthread_barrier_wait(&gate);
    forks("fork-threads", "fork-threads-child");
    _exit(0); // the cost of ending threads is another subject
}

const struct scale_subject scale_subjects[] = {
    {"trim", trim},
    {"fork-heap", fork_heap},
    {"fork-threads", fork_threads},
    {NULL, NULL},
};
