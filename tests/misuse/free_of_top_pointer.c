// expect: hakmem: invalid free: 0xffffffffffffffff was not allocated by hakmem
//
// free of -1, as MAP_FAILED is.
#include "../support/misuse.h"

int main(void)
{
    ht_free((void *)UINTPTR_MAX);
    _exit(0);
}
