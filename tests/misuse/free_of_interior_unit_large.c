// expect: hakmem: invalid free: 0x[0-9a-f]+ points 131072 bytes into a block of 1048576 bytes; free what malloc returned
//
// So is a multiple of 64 KiB, for which an entry of the map is read.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(1048576);
    ht_free(block + 131072);
    _exit(0);
}
