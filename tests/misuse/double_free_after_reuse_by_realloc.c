// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// realloc moved the block; the program frees the old address.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    char *moved = ht_hide(realloc(ht_hide(block), 5000));
    ht_free(block);
    ht_free(moved);
    _exit(0);
}
