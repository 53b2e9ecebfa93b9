// expect: hakmem: write after free: byte 50 of 0x[0-9a-f]+ [(]block of 112 bytes[)] was written after it was freed
// env: HAKMEM_ZERO_ON_FREE=1
// not tagged: faults at once
// with features
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100);
    ht_block(100); // keeps the slab
    ht_free(block);
    block[50] = 1;
    for (int i = 0; i < 10000; i++) {
        ht_block(100);
    }
    _exit(0);
}
