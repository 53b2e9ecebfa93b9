// expect: hakmem: invalid free: 0x[0-9a-f]+ points 112 bytes into a block of 1280 bytes; free what malloc returned
// env: HAKMEM_CHECK=1
//
// The offset and the size fit a class that is not a power of two.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(1200);
    ht_free(block + 112);
    _exit(0);
}
