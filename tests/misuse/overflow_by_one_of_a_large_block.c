// with features
// expect: hakmem: overflow: byte 100001 of 0x[0-9a-f]+, a block of 100001 bytes, was written
// env: HAKMEM_GUARD_LARGE=1
//
// Between the block and the guard are 15 bytes because of its alignment.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100001);
    block[100001] = 1;
    ht_free(block);
    _exit(0);
}
