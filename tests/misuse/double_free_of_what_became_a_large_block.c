// expect: hakmem: double free: 0x[0-9a-f]+ is already free, and its memory is in use again; HAKMEM_CHECK=1 stops at the second free itself
// not tagged: is judged by the state of the block
//
// A thread's free waits in its parcel while the owner frees the same block, whose memory then becomes
// part of a large one.
#include "../support/misuse.h"

static pthread_barrier_t turn;

static void *free_in_thread(void *block)
{
    ht_block(1); // now the thread has a cache, and parcels: its first frees do without
    ht_free(block);
    pthread_barrier_wait(&turn); // the parcel is not sent yet
    pthread_barrier_wait(&turn);
    return NULL;
}

int main(void)
{
    enum { BLOCKS = 2000, SIZE = 5000 };
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = ht_block(SIZE);
    }
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    HT_CHECK(pthread_create(&thread, NULL, free_in_thread, blocks[BLOCKS / 100]) == 0, "no thread");
    pthread_barrier_wait(&turn);
    for (size_t i = 0; i < BLOCKS; i++) {
        ht_free(blocks[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        ht_block(HT_MIB);
    }
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
    _exit(0);
}
