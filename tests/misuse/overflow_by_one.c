// expect: hakmem: overflow: byte 100 of 0x[0-9a-f]+, a block of 100 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
//
// A byte behind the 100 requested ones, though the block has room for 104.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100);
    block[100] = 1;
    ht_free(block);
    _exit(0);
}
