// expect: hakmem: invalid realloc: 0xdeadbeefdeadbeef was not allocated by hakmem
//
// realloc of an address that no memory can have.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(realloc((void *)ht_hide_size(0xdeadbeefdeadbeefu), 100));
    _exit(block == NULL);
}
