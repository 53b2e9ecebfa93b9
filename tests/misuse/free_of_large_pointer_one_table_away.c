// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// The map's table covers 1 TiB: this address shares the entry of a live large block, whose place
// in BigCache is free.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100000);
    ht_free(block + ((size_t)1 << 40));
    _exit(0);
}
