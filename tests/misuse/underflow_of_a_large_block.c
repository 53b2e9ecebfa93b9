// with features
// expect: hakmem: underflow: byte 8 before 0x[0-9a-f]+, a block of 100000 bytes, was written
// env: HAKMEM_GUARD_LARGE=1
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100000);
    block[-8] = 1;
    ht_free(block);
    _exit(0);
}
