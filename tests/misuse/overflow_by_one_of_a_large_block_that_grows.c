// with features
// expect: hakmem: overflow: byte 100101 of 0x[0-9a-f]+, a block of 100101 bytes, was written
// env: HAKMEM_GUARD_LARGE=1
//
// The bytes written behind the block are about to become a part of it: they are checked first.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(realloc(ht_block(100001), 100101));
    block[100101] = 1;
    ht_free(realloc(block, 100201));
    _exit(0);
}
