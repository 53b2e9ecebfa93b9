// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// Two threads free one block; the second one ends the program.
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
    pthread_join(thread, NULL);
    ht_free(block);
    _exit(0);
}
