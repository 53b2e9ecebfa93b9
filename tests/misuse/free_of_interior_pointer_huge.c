// expect: hakmem: invalid free: 0x[0-9a-f]+ points 4194304 bytes into a block of 16777216 bytes; free what malloc returned
//
// free of an address 4 MiB into a huge block stops at once.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(16 * HT_MIB);
    ht_free(block + 4 * HT_MIB);
    _exit(0);
}
