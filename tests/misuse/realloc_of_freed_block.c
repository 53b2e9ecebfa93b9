// expect: hakmem: invalid realloc: 0x[0-9a-f]+ [(]block of 64 bytes[)] is free
// env: HAKMEM_CHECK=1
//
// realloc of a block that was freed.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block);
    block = ht_hide(realloc(ht_hide(block), 5000));
    _exit(0);
}
