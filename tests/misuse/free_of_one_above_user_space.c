// expect: hakmem: invalid free: 0x800000000000 was not allocated by hakmem
//
// free of the first address above user space.
#include "../support/misuse.h"

int main(void)
{
    ht_free((void *)0x800000000000u);
    _exit(0);
}
