// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// Found when the program ends, at the latest, also if the thread that did it has ended before.
#include "../support/misuse.h"

static void *free_twice(void *nothing)
{
    char *block = ht_block(64);
    ht_free(block);
    ht_free(block);
    return nothing;
}

int main(void)
{
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, free_twice, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    return 0;
}
