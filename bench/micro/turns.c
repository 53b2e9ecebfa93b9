// turns.c -- a program that changes: small blocks of one thread, blocks that cross threads, large buffers, in turn.
//
// Owns      nothing.
// Threads   two while blocks cross threads, one while it works alone.
// Fails     wrong arguments print the usage and end the program with code 2; no memory or no thread aborts it.
//
// In the first kind of turn it replaces blocks at random. In the second, one thread allocates batches of messages and another
// frees them. At the end of each turn it prints a line: the kind of turn, and how much was done in a second.
#include "loop.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define USAGE "turns SECONDS TURNS"

enum {
    BATCH = 64,
    QUEUE_BATCHES = 32,
    MESSAGE_LEAST = 16,
    MESSAGE_MOST = 1024,
    SLOTS_MOST = 4096,
    TOUCHED_EACH = 4096, // bytes
};

// The blocks of a thread that works alone.
struct blocks {
    size_t slots;
    size_t least; // bytes
    size_t most;
};
static const struct blocks small = {SLOTS_MOST, 1100, 8000};
static const struct blocks large = {64, 1 << 16, 1 << 22};

struct batch {
    char *messages[BATCH];
};

static struct batch *queue[QUEUE_BATCHES];
static sem_t filled;
static sem_t emptied;
static uint64_t random_state = 1;

static double now_s(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t between(size_t least, size_t most)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return least + (random_state >> 33) % (most - least + 1);
}

static void *take(size_t bytes)
{
    char *block = loop_require(malloc(bytes));
    for (size_t i = 0; i < bytes; i += TOUCHED_EACH) {
        block[i] = 1;
    }
    return block;
}

static void *consume(void *unused)
{
    struct batch *batch = NULL;
    for (size_t i = 0;; i = (i + 1) % QUEUE_BATCHES) {
        while (sem_wait(&filled) != 0) {
        }
        batch = queue[i];
        sem_post(&emptied);
        if (batch == NULL) {
            return unused;
        }
        for (size_t j = 0; j < BATCH; j++) {
            free(batch->messages[j]);
        }
        free(batch);
    }
}

static double hand_over(double seconds)
{
    const double begin = now_s();
    size_t count = 0;
    pthread_t consumer;
    sem_init(&filled, 0, 0);
    sem_init(&emptied, 0, QUEUE_BATCHES);
    if (pthread_create(&consumer, NULL, consume, NULL) != 0) {
        abort();
    }
    for (bool is_over = false; !is_over; count++) {
        is_over = now_s() - begin > seconds;
        struct batch *batch = is_over ? NULL : take(sizeof *batch);
        for (size_t i = 0; i < BATCH && !is_over; i++) {
            batch->messages[i] = take(between(MESSAGE_LEAST, MESSAGE_MOST));
        }
        while (sem_wait(&emptied) != 0) {
        }
        queue[count % QUEUE_BATCHES] = batch;
        sem_post(&filled);
    }
    pthread_join(consumer, NULL);
    return (double)(BATCH * count) / (now_s() - begin);
}

static double work_alone(double seconds, const struct blocks *kind)
{
    static char *blocks[SLOTS_MOST];
    const double begin = now_s();
    size_t count = 0;
    for (; count % kind->slots != 0 || now_s() - begin < seconds; count++) {
        char **slot = &blocks[between(0, kind->slots - 1)];
        free(*slot);
        *slot = take(between(kind->least, kind->most));
    }
    for (size_t i = 0; i < kind->slots; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return (double)count / (now_s() - begin);
}

static double work(size_t turn, double seconds, const char **kind)
{
    switch (turn % 3) {
    case 0:
        *kind = "small";
        return work_alone(seconds, &small);
    case 1:
        *kind = "handed";
        return hand_over(seconds);
    default:
        *kind = "large";
        return work_alone(seconds, &large);
    }
}

int main(int argc, char **argv)
{
    const size_t seconds = loop_number(argc, argv, 1, USAGE);
    const size_t turns = loop_number(argc, argv, 2, USAGE);
    for (size_t turn = 0; turn < turns; turn++) {
        const char *kind = NULL;
        const double done = work(turn, (double)seconds, &kind);
        printf("%s %.0f a second\n", kind, done);
        fflush(stdout);
    }
    return 0;
}
