// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of [0-9]+ bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// An aligned block, freed twice; found at the latest at exit.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(memalign(256, 1000));
    ht_free(block);
    ht_free(block);
    return 0;
}
