// turns.c -- a program that changes: handing blocks over and working alone, by turns.
//
// Owns      nothing.
// Threads   two while it hands over, one while it works alone.
// Fails     wrong arguments print the usage and end the program with code 2; no memory or no thread aborts it.
//
// While it hands over, one thread allocates batches of messages and another frees them; alone, it replaces larger
// blocks at random. A line for each turn, when it is over: its kind and what it did in a second.
#include "loop.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define USAGE "turns SECONDS TURNS"

enum {
    BATCH = 64,
    QUEUE_BATCHES = 128,
    MESSAGE_LEAST = 16,
    MESSAGE_MOST = 1024,
    SLOTS = 4096,
    BLOCK_LEAST = 1100,
    BLOCK_MOST = 8000,
};

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
    block[0] = 1;
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

static double work_alone(double seconds)
{
    static char *blocks[SLOTS];
    const double begin = now_s();
    size_t count = 0;
    for (; count % SLOTS != 0 || now_s() - begin < seconds; count++) {
        char **slot = &blocks[between(0, SLOTS - 1)];
        free(*slot);
        *slot = take(between(BLOCK_LEAST, BLOCK_MOST));
    }
    for (size_t i = 0; i < SLOTS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return (double)count / (now_s() - begin);
}

int main(int argc, char **argv)
{
    const size_t seconds = loop_number(argc, argv, 1, USAGE);
    const size_t turns = loop_number(argc, argv, 2, USAGE);
    for (size_t turn = 0; turn < turns; turn++) {
        const bool is_handed = turn % 2 == 0;
        const double done = is_handed ? hand_over((double)seconds) : work_alone((double)seconds);
        printf("%s %.0f a second\n", is_handed ? "handed" : "alone", done);
        fflush(stdout);
    }
    return 0;
}
