// expect: hakmem: invalid free: 0x[0-9a-f]+ points 104857600 bytes into a block of 629145600 bytes; free what malloc returned
//
// free of an address 100 MiB into a block that has a mapping of its own stops at once.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(malloc(600 * HT_MIB));
    if (block == NULL) {
        HT_SKIP("no 600 MiB of addresses");
    }
    ht_free(block + 100 * HT_MIB);
    _exit(0);
}
