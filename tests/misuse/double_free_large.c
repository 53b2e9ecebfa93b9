// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 262144 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// A large block's second free stops at once, without any option.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(262144);
    ht_free(block);
    ht_free(block);
    _exit(0);
}
