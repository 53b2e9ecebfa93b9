// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 262144 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// Found at once also after other large blocks came and went.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(262144);
    char *other = ht_block(300000);
    ht_free(block);
    ht_free(other);
    ht_free(block);
    _exit(0);
}
