// expect: hakmem: invalid realloc: 0x[0-9a-f]+ was not allocated by hakmem
//
// The map's table covers 1 TiB: this address shares the entry of a live block.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(100);
    char *other = ht_hide(realloc(ht_hide(block + ((size_t)1 << 40)), 90));
    _exit(other == NULL);
}
