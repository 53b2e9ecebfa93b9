// with features
// expect: hakmem: overflow: byte 100101 of 0x[0-9a-f]+, a block of 100101 bytes, was written
// env: HAKMEM_GUARD_LARGE=1
//
// The block has grown in place, into a part of a page: the rest of that page is checked.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(realloc(ht_block(100001), 100101));
    block[100101] = 1;
    ht_free(block);
    _exit(0);
}
