// expect: hakmem: invalid free: 0x20 was not allocated by hakmem
//
// free of a field's address in a struct at NULL.
#include "../support/misuse.h"

int main(void)
{
    ht_free((void *)32);
    _exit(0);
}
