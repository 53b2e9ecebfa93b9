// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// free of an odd address that belongs to nobody.
#include "../support/misuse.h"

int main(void)
{
    static char variable[64];
    ht_free(variable + 3);
    _exit(0);
}
