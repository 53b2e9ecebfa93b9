// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 16777216 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// A block too large to be kept: its memory was released with the first free.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(16 * HT_MIB);
    ht_free(block);
    ht_free(block);
    _exit(0);
}
