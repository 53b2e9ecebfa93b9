// expect: hakmem: invalid realloc: 0x[0-9a-f]+ [(]block of 262144 bytes[)] is free
//
// realloc of a large block that was freed stops at once.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(262144);
    ht_free(block);
    block = ht_hide(realloc(ht_hide(block), 500000));
    _exit(0);
}
