// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
// env: HAKMEM_QUARANTINE_BYTES=1M
// with features
//
// Many other blocks were freed and allocated in between, and none of those was this block.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block);
    for (int i = 0; i < 10000; i++) {
        ht_free(ht_block(64));
    }
    ht_free(block);
    _exit(0);
}
