// producer_consumer.c -- blocks that another thread frees, passed on in batches.
//
// Asymmetric: half of the threads allocate messages and the other half only frees them. Symmetric:
// every thread produces for the next one and consumes what the one before it made. A batch is an
// allocated array of 64 messages of 16 to 1,024 bytes; a queue holds at most 128 batches, so that
// the producer cannot run away. Answer: the mixed sum of the stamps of all messages freed.
#include "support/args.h"
#include "support/block.h"
#include "support/crew.h"

#include <pthread.h>

enum { BATCH = 64, QUEUE_BATCHES_MAX = 128, SIZE_MIN = 16, SIZE_MAX_MESSAGE = 1024 };

struct batch {
    struct batch *next;
    struct block messages[BATCH];
};

// Batches on their way from one thread to one other.
struct queue {
    _Alignas(CREW_APART_BYTES) pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *oldest;
    struct batch **end;
    unsigned count;
};

struct member {
    _Alignas(CREW_APART_BYTES) struct queue *out; // NULL for one that only consumes
    struct queue *in;                             // NULL for one that only produces
    uint64_t batches;
    uint64_t answer;
    struct prng prng;
};

static void queue_open(struct queue *queue)
{
    if (pthread_mutex_init(&queue->lock, NULL) != 0 ||
        pthread_cond_init(&queue->changed, NULL) != 0) {
        report_exhausted("locks");
    }
    queue->oldest = NULL;
    queue->end = &queue->oldest;
    queue->count = 0;
}

// Takes the batch in. False: the queue is full and the caller will not wait.
static bool queue_push(struct queue *queue, struct batch *batch, bool may_wait)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == QUEUE_BATCHES_MAX && may_wait) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    bool has_room = queue->count < QUEUE_BATCHES_MAX;
    if (has_room) {
        batch->next = NULL;
        *queue->end = batch;
        queue->end = &batch->next;
        queue->count++;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return has_room;
}

// Takes all batches out, oldest first. NULL: there is none and the caller will not wait.
static struct batch *queue_take(struct queue *queue, bool may_wait)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && may_wait) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    struct batch *batches = queue->oldest;
    queue->oldest = NULL;
    queue->end = &queue->oldest;
    queue->count = 0;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return batches;
}

static struct batch *batch_make(struct prng *prng)
{
    struct batch *batch = block_require(malloc(sizeof *batch));
    for (unsigned i = 0; i < BATCH; i++) {
        block_take(&batch->messages[i], prng_between(prng, SIZE_MIN, SIZE_MAX_MESSAGE), i);
    }
    return batch;
}

static uint64_t batch_free(struct batch *batch)
{
    uint64_t answer = 0;
    for (unsigned i = 0; i < BATCH; i++) {
        answer += block_give(&batch->messages[i], i);
    }
    free(batch);
    return answer;
}

static void member_consume(struct member *member, struct batch *batches, uint64_t *to_free)
{
    while (batches != NULL) {
        struct batch *next = batches->next;
        member->answer += batch_free(batches);
        batches = next;
        (*to_free)--;
    }
}

// A ring of threads cannot stand still: one waits to push only after it has found its own inward
// queue empty, and to take only when it has nothing left to push.
static void member_work(void *argument)
{
    struct member *member = argument;
    uint64_t to_make = member->out != NULL ? member->batches : 0;
    uint64_t to_free = member->in != NULL ? member->batches : 0;
    struct batch *made = NULL;
    while (to_make > 0 || to_free > 0) {
        struct batch *taken = NULL;
        if (to_free > 0) {
            taken = queue_take(member->in, to_make == 0);
            member_consume(member, taken, &to_free);
        }
        if (to_make > 0) {
            made = made != NULL ? made : batch_make(&member->prng);
            if (queue_push(member->out, made, taken == NULL)) {
                made = NULL;
                to_make--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"asymmetric", "symmetric", NULL};
    struct args args = args_begin(
        argc, argv, "producer_consumer [asymmetric | symmetric] [threads] [batches] [seed]");
    bool is_symmetric = args_word(&args, "mode", modes) == 1;
    unsigned threads = (unsigned)args_number(&args, "threads", 2, 2, CREW_THREADS_MAX);
    uint64_t batches = args_number(&args, "batches", 60000, 1, UINT32_MAX);
    uint64_t seed = args_number(&args, "seed", 1, 0, UINT64_MAX);
    args_end(&args);
    if (threads % 2 != 0 && !is_symmetric) {
        args_reject(&args, "threads", "must be even when half of them only consume");
    }

    struct queue *queues = report_table(threads, sizeof *queues);
    struct member *members = report_table(threads, sizeof *members);
    uint64_t producers = is_symmetric ? threads : threads / 2;
    for (unsigned i = 0; i < threads; i++) {
        queue_open(&queues[i]);
        members[i].batches = batches;
        members[i].prng = prng_seed(seed, i);
        if (is_symmetric) {
            members[i].out = &queues[i];
            members[i].in = &queues[(i + threads - 1) % threads];
        } else if (i % 2 == 0) {
            members[i].out = &queues[i];
        } else {
            members[i].in = &queues[i - 1];
        }
    }
    uint64_t elapsed_ns = crew_run(threads, member_work, members, sizeof *members);

    uint64_t answer = 0;
    for (unsigned i = 0; i < threads; i++) {
        answer += members[i].answer;
    }
    report_answer(answer, 2 * producers * batches * (BATCH + 1), elapsed_ns);
    return 0;
}
