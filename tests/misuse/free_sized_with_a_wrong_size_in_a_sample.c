// expect: hakmem: wrong size: 0x[0-9a-f]+ was freed as 1000 bytes but is a block of 64 bytes
//
// Without option check the size is checked when the magazine is full.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    HT_CHECK(sized != NULL, "there is no free_sized");
    void *blocks[1000];
    for (int i = 0; i < 1000; i++) {
        blocks[i] = ht_block(64);
    }
    for (int i = 0; i < 1000; i++) {
        sized(blocks[i], 1000);
    }
    _exit(0);
}
