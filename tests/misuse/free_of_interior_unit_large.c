// expect: hakmem: invalid free: 0x[0-9a-f]+ points 131072 bytes into a block of 1048576 bytes; free what malloc returned
//
// Nor is a multiple of 64 KiB, where an entry of the address map is looked at.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(1048576);
    ht_free(block + 131072);
    _exit(0);
}
