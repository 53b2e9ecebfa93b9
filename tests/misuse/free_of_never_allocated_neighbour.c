// expect: hakmem: invalid free: 0x[0-9a-f]+ [(]block of 64 bytes[)] (was never allocated|is already free.*)
// env: HAKMEM_CHECK=1
// not tagged: is judged by the state of the block
//
// free of the next block's address, which malloc has never returned.
#include "../support/misuse.h"

int main(void)
{
    char *blocks[3];
    for (size_t i = 0; i < 3; i++) {
        blocks[i] = ht_block(64);
    }
    char *last = blocks[0];
    for (size_t i = 1; i < 3; i++) {
        last = blocks[i] > last ? blocks[i] : last;
    }
    ht_free(last + 64);
    _exit(0);
}
