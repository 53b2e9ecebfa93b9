// expect: hakmem: write after free: byte 0 of 0x[0-9a-f]+ [(]block of 32 bytes[)] was written after it was freed
// env: HAKMEM_ZERO_ON_FREE=1 HAKMEM_QUARANTINE_BYTES=1M
// not tagged: faults at once
// with features
//
// The block is never allocated again.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(30);
    ht_free(block);
    block[0] = 1;
    exit(0);
}
