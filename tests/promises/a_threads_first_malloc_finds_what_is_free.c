// native only
// Threads whose first malloc comes when all addresses are taken and half of the heap is free get free blocks,
// though there is no room for a cache of their own.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "../support/addresses.h"

enum { THREADS = 400, BLOCKS_MOST = 4096, BLOCK_BYTES = 100000 };

struct member {
    sem_t may_begin;
    void *block;
};

static struct member members[THREADS];
static sem_t is_done;

static void *work(void *argument)
{
    struct member *member = argument;
    sem_wait(&member->may_begin);
    member->block = malloc(100);
    if (member->block != NULL) {
        memset(member->block, 1, 100);
    }
    sem_post(&is_done);
    sem_wait(&member->may_begin);
    free(member->block);
    return NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    static void *blocks[BLOCKS_MOST];
    ht_start();
    sem_init(&is_done, 0, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    for (unsigned i = 0; i < THREADS; i++) {
        sem_init(&members[i].may_begin, 0, 0);
        HT_CHECK(pthread_create(&threads[i], &attributes, work, &members[i]) == 0, "no thread");
    }
    free(malloc(1));
    ht_limit_addresses(192 * HT_MIB);
    unsigned count = 0;
    while (count < BLOCKS_MOST && (blocks[count] = malloc(BLOCK_BYTES)) != NULL) {
        count++;
    }
    HT_CHECK(count > 100 && count < BLOCKS_MOST, "%u blocks were taken", count);
    for (unsigned i = 0; i < count; i += 2) {
        free(blocks[i]);
    }
    unsigned refused = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        sem_post(&members[i].may_begin);
        sem_wait(&is_done);
        refused += members[i].block == NULL;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        sem_post(&members[i].may_begin);
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(refused == 0,
             "%u of %d threads got nothing, with %u blocks of %d bytes free",
             refused,
             THREADS,
             (count + 1) / 2,
             BLOCK_BYTES);
    return 0;
}
