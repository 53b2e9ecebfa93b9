// expect: hakmem: overflow: byte 104 of 0x[0-9a-f]+, a block of 112 bytes, was written
// env: HAKMEM_CANARIES=1
// not tagged: faults at once
// with features
//
// Before a block is the end of another one.
#include "../support/misuse.h"

int main(void)
{
    char *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = ht_block(100);
    }
    for (int i = 1; i < 64; i++) {
        blocks[i][-1] ^= 1;
    }
    for (int i = 0; i < 64; i++) {
        ht_free(blocks[i]);
    }
    _exit(0);
}
