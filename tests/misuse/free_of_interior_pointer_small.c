// expect: hakmem: invalid free: 0x[0-9a-f]+ points 8 bytes into a block of 64 bytes; free what malloc returned
// env: HAKMEM_CHECK=1
//
// free of an address inside a small block.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block + 8);
    _exit(0);
}
