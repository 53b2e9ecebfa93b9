// expect: hakmem: invalid free: 0x[0-9a-f]+ points 16 bytes into a block of 64 bytes; free what malloc returned
//
// Without the option it is found at exit, at the latest.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block + 16);
    return 0;
}
