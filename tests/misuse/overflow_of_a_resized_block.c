// expect: hakmem: overflow: byte 900 of 0x[0-9a-f]+, a block of 900 bytes, was written
// env: HAKMEM_CANARIES=1
// with features
//
// The canary moves with realloc, also if the block stays in place.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(realloc(ht_block(1000), 900));
    block[900] = 1;
    ht_free(block);
    _exit(0);
}
