// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 96 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// Between the two frees are so many others that the block has left the thread's cache.
#include "../support/misuse.h"

int main(void)
{
    enum { MANY = 50000 };
    static char *others[MANY];
    char *block = ht_block(96);
    for (size_t i = 0; i < MANY; i++) {
        others[i] = ht_block(96);
    }
    ht_free(block);
    for (size_t i = 0; i < MANY; i += 2) {
        ht_free(others[i]); // the others keep the slabs in use
    }
    ht_free(block);
    return 0;
}
