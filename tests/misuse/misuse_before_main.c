// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// A misuse in a constructor is reported as well.
#include "../support/misuse.h"

__attribute__((constructor)) static void construct(void)
{
    static char variable[16];
    ht_free(variable);
}

int main(void)
{
    _exit(0);
}
