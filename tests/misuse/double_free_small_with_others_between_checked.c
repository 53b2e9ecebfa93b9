// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 1024 bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// Found at once although another block of the same size was freed in between.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(1024);
    char *other = ht_block(1024);
    ht_free(block);
    ht_free(other);
    ht_free(block);
    _exit(0);
}
