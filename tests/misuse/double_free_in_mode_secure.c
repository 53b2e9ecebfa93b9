// with features
// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 80 bytes[)] is already free
// env: HAKMEM_MODE=secure
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block);
    ht_free(block);
    _exit(0);
}
