// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of [0-9]+ bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// An aligned block, freed twice.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_hide(aligned_alloc(4096, 100));
    ht_free(block);
    ht_free(block);
    _exit(0);
}
