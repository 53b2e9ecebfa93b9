// expect: hakmem: invalid free: 0x[0-9a-f]+ points 8192 bytes into a block of 262144 bytes; free what malloc returned
//
// An address a whole number of pages into the block is found, too.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(262144);
    ht_free(block + 8192);
    _exit(0);
}
