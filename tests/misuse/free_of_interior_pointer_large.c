// expect: hakmem: invalid free: 0x[0-9a-f]+ points 8 bytes into a block of 262144 bytes; free what malloc returned
//
// free of an address inside a large block stops at once.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(262144);
    ht_free(block + 8);
    _exit(0);
}
