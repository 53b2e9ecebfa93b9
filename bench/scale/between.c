// between.c -- blocks that one thread allocates and another frees.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"
#include "support/prng.h"
#include "support/report.h"

struct owner {
    size_t count;
    void **blocks;
};

static pthread_barrier_t made;
static pthread_barrier_t done;

static void *make(void *member)
{
    enum { BYTES = 16 };
    struct owner *owner = member;
    for (size_t i = 0; i < owner->count; i++) {
        owner->blocks[i] = memset(scale_block(BYTES), 1, BYTES);
    }
    pthread_barrier_wait(&made);
    pthread_barrier_wait(&done);
    return NULL;
}

// Owners allocate small blocks and sleep; one thread frees one of each in turn.
static void owners(size_t count)
{
    enum { FREES = 4000000, EACH_MOST = 65536 };
    const size_t each = FREES / count < EACH_MOST ? FREES / count : EACH_MOST;
    struct owner *all = report_table(count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct owner){each, report_table(each, sizeof(void *))};
    }
    pthread_barrier_init(&made, NULL, (unsigned)count + 1);
    pthread_barrier_init(&done, NULL, (unsigned)count + 1);
    struct scale_crew *crew = scale_start(count, make, all, sizeof *all);
    pthread_barrier_wait(&made);
    const double before = (double)report_resident_kib();
    const uint64_t begin = scale_cpu_ns();
    for (size_t i = 0; i < each; i++) {
        for (size_t owner = 0; owner < count; owner++) {
            free(all[owner].blocks[i]);
        }
    }
    const uint64_t spent = scale_cpu_ns() - begin;
    scale_point("free-of-owners", scale_each(spent, each * count));
    scale_point("owners-resident", 100 * (double)report_resident_kib() / before);
    pthread_barrier_wait(&done);
    scale_join(crew);
}

// One thread has a batch at a time.
struct lane {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **blocks[2];
    unsigned filled; // batches so far
    unsigned freed;
    size_t batch;
    unsigned batches;
};

static void wait_while(struct lane *lane, unsigned apart)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->filled - lane->freed == apart) {
        pthread_cond_wait(&lane->changed, &lane->lock);
    }
    pthread_mutex_unlock(&lane->lock);
}

static void announce(struct lane *lane, unsigned *count)
{
    pthread_mutex_lock(&lane->lock);
    ++*count;
    pthread_cond_signal(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

static void *produce(void *member)
{
    struct lane *lane = member;
    struct prng prng = prng_seed(7, 0);
    for (unsigned turn = 0; turn < lane->batches; turn++) {
        wait_while(lane, 2);
        for (size_t i = 0; i < lane->batch; i++) {
            lane->blocks[turn % 2][i] = scale_block(prng_between(&prng, 16, 496));
        }
        announce(lane, &lane->filled);
    }
    return NULL;
}

static void consume(struct lane *lane)
{
    for (unsigned turn = 0; turn < lane->batches; turn++) {
        wait_while(lane, 0);
        for (size_t i = 0; i < lane->batch; i++) {
            free(lane->blocks[turn % 2][i]);
        }
        announce(lane, &lane->freed);
    }
}

// One thread allocates, another frees, at most two batches later: processor time of both for each block.
static void handed(size_t batch)
{
    enum { BLOCKS = 4000000 };
    const unsigned batches = BLOCKS / batch > 4 ? (unsigned)(BLOCKS / batch) : 4;
    struct lane lane = {.batch = batch, .batches = batches};
    pthread_mutex_init(&lane.lock, NULL);
    pthread_cond_init(&lane.changed, NULL);
    lane.blocks[0] = report_table(batch, sizeof(void *));
    lane.blocks[1] = report_table(batch, sizeof(void *));
    const uint64_t begin = scale_cpu_ns();
    struct scale_crew *crew = scale_start(1, produce, &lane, sizeof lane);
    consume(&lane);
    scale_join(crew);
    scale_point("handed", scale_each(scale_cpu_ns() - begin, batch * batches));
}

const struct scale_subject scale_subjects[] = {
    {"owners", owners},
    {"handed", handed},
    {NULL, NULL},
};
