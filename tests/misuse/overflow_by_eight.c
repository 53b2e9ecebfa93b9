// expect: hakmem: overflow: byte 1000 of 0x[0-9a-f]+, a block of 1000 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(1000);
    memset(block + 1000, 1, 8);
    ht_free(block);
    _exit(0);
}
