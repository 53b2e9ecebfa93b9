// native only
// When all addresses are taken, free blocks between blocks in use serve any request: those of a thread that has freed none of
// them, and those for another size. Each of the program's blocks keeps its content.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../support/addresses.h"

enum { MOST = 1000000, WANTED = 200, ROUNDS = 5 };

static const struct {
    size_t bytes, asked;
    unsigned freed_of; // one block in this many
} rounds[ROUNDS] = {
    {100, 100, 10}, {100, 48, 10}, {1000, 600, 10}, {30000, 1000, 10}, {4096, 2048, 5}};

static sem_t may_take;
static sem_t is_done;
static size_t asked;
static unsigned got;
static void *mine[WANTED];

static void take(void)
{
    for (got = 0; got < WANTED; got++) {
        mine[got] = malloc(asked);
        if (mine[got] == NULL) {
            break;
        }
        memset(mine[got], 0xee, asked);
    }
}

static void leave(void)
{
    for (unsigned i = 0; i < got; i++) {
        free(mine[i]);
    }
}

static void *other_thread(void *unused)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        sem_wait(&may_take);
        take();
        sem_post(&is_done);
        sem_wait(&may_take);
        leave();
        sem_post(&is_done);
    }
    return unused;
}

// Fill memory, free some of it, and check which requests it serves.
static void play(uint32_t **blocks, unsigned round)
{
    const size_t bytes = rounds[round].bytes;
    unsigned count = 0;
    while (count < MOST && (blocks[count] = malloc(bytes)) != NULL) {
        *blocks[count] = count;
        count++;
    }
    unsigned freed = 0;
    for (unsigned i = 0; i < count; i += rounds[round].freed_of) {
        free(blocks[i]);
        blocks[i] = NULL;
        freed++;
    }
    HT_CHECK(freed > WANTED / 4, "%u of %u blocks of %zu bytes were freed", freed, count, bytes);
    const unsigned wanted = freed < WANTED ? freed : WANTED;
    asked = rounds[round].asked;
    take();
    HT_CHECK(got >= wanted * 9 / 10, "round %u: the same thread got %u of %u", round, got, wanted);
    leave();
    sem_post(&may_take);
    sem_wait(&is_done);
    HT_CHECK(got >= wanted * 9 / 10, "round %u: another thread got %u of %u", round, got, wanted);
    for (unsigned i = 0; i < count; i++) {
        HT_CHECK(blocks[i] == NULL || *blocks[i] == i, "block %u has another content", i);
        free(blocks[i]);
    }
    sem_post(&may_take);
    sem_wait(&is_done);
}

int main(void)
{
    pthread_t thread;
    ht_start();
    uint32_t **blocks = mmap(
        NULL, MOST * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(blocks != MAP_FAILED, "no memory for the program's own list");
    sem_init(&may_take, 0, 0);
    sem_init(&is_done, 0, 0);
    HT_CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0, "no thread");
    free(malloc(1));
    ht_limit_addresses(32 * HT_MIB);
    for (unsigned round = 0; round < ROUNDS; round++) {
        play(blocks, round);
    }
    ht_limit_addresses(SIZE_MAX);
    pthread_join(thread, NULL);
    return 0;
}
