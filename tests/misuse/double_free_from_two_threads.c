// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// Two threads free one block, each into its own cache.
#include "../support/misuse.h"

static void *free_in_thread(void *block)
{
    ht_free(block);
    return NULL;
}

int main(void)
{
    char *block = ht_block(64);
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, free_in_thread, block) == 0, "no thread");
    ht_free(block);
    pthread_join(thread, NULL);
    return 0;
}
