// expect: hakmem: (double free: 0x[0-9a-f]+ [(]block of 16777216 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself|invalid free: 0x[0-9a-f]+ was not allocated by hakmem)
//
// A block with a mapping of its own; once unmapped it is nobody's.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(16 * HT_MIB);
    ht_free(block);
    ht_free(block);
    _exit(0);
}
