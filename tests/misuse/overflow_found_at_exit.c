// expect: hakmem: overflow: byte 10 of 0x[0-9a-f]+, a block of 10 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
//
// The block is never freed.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(10);
    block[10] = 1;
    exit(0);
}
