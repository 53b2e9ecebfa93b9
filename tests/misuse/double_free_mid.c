// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 20480 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// A block of some KiB, freed twice; found at the latest at exit.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(20000);
    ht_free(block);
    ht_free(block);
    return 0;
}
