// native only
// If no memory is left (RLIMIT_AS), malloc finds free blocks in the slabs of other threads, however many threads there are: of one
// with many, and of sleeping ones with a few each.
#include <pthread.h>
#include <stdlib.h>

#include "../support/addresses.h"

enum { SLEEPERS = 150, BLOCKS = 20000, STAYS = 64, BLOCK_BYTES = 1000 };

static pthread_barrier_t is_ready;
static pthread_barrier_t may_end;
static void *blocks[BLOCKS];

static void *keep_few(void *argument)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        HT_CHECK(blocks[i] != NULL, "malloc failed");
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % STAYS != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    pthread_barrier_wait(&is_ready);
    pthread_barrier_wait(&may_end);
    return argument;
}

static void *keep_one(void *argument)
{
    void *block = ht_hide(malloc(BLOCK_BYTES));
    HT_CHECK(block != NULL, "malloc failed");
    pthread_barrier_wait(&is_ready);
    pthread_barrier_wait(&may_end);
    free(block);
    return argument;
}

static void start(pthread_t *thread, void *(*run)(void *))
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    HT_CHECK(pthread_create(thread, &attributes, run, NULL) == 0, "no thread");
    pthread_attr_destroy(&attributes);
}

// How many blocks there are before the first refusal.
static size_t take_all(void)
{
    size_t count = 0;
    while (ht_hide(malloc(BLOCK_BYTES)) != NULL) {
        count++;
    }
    return count;
}

static void expect_from(void *(*first)(void *), size_t least)
{
    static pthread_t threads[SLEEPERS + 1];
    pthread_barrier_init(&is_ready, NULL, SLEEPERS + 2);
    pthread_barrier_init(&may_end, NULL, SLEEPERS + 2);
    for (unsigned i = 0; i <= SLEEPERS; i++) {
        start(&threads[i], i == 0 ? first : keep_one);
    }
    pthread_barrier_wait(&is_ready);
    free(ht_hide(malloc(BLOCK_BYTES)));
    ht_limit_addresses(0);
    const size_t got = take_all();
    ht_limit_addresses(SIZE_MAX);
    HT_CHECK(got >= least, "%zu blocks for at least %zu that were free", got, least);
    pthread_barrier_wait(&may_end);
    for (unsigned i = 0; i <= SLEEPERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    ht_start();
    expect_from(keep_one, SLEEPERS * 40); // of 65 in each slab
    expect_from(keep_few, BLOCKS / 10 * 9);
    return 0;
}
