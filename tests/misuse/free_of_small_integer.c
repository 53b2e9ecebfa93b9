// expect: hakmem: invalid free: 0x1 was not allocated by hakmem
//
// free of 1.
#include "../support/misuse.h"

int main(void)
{
    ht_free((void *)1);
    _exit(0);
}
