// expect: hakmem: write after free: byte 50 of 0x[0-9a-f]+ [(]block of 112 bytes[)] was written after it was freed
// env: HAKMEM_ZERO_ON_FREE=1
// not tagged: faults at once
// with features
#include "../support/misuse.h"

enum { OTHERS = 1200 }; // two slabs' blocks and a part of a third's

int main(void)
{
    static char *others[OTHERS];
    char *block = ht_block(100);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = ht_block(100);
    }
    ht_free(block);
    block[50] = 1;
    for (int i = 0; i < OTHERS; i++) {
        ht_free(others[i]);
    }
    _exit(0);
}
