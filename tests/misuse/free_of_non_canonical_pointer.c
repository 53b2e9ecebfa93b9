// expect: hakmem: invalid free: 0xdeadbeefdeadbeef was not allocated by hakmem
//
// free of an address that no memory can have.
#include "../support/misuse.h"

int main(void)
{
    ht_free((void *)0xdeadbeefdeadbeefu);
    _exit(0);
}
