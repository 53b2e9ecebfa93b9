// expect: hakmem: overflow: byte 24 of 0x[0-9a-f]+, a block of 32 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
//
// The zero that ends a string which fills its block. The canary's first byte is never zero.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(24);
    block[24] = 0;
    ht_free(block);
    _exit(0);
}
