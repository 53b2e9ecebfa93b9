// expect: hakmem: wrong size: 0x[0-9a-f]+ was freed as 64 bytes but is a block of 262144 bytes
// env: HAKMEM_CHECK=1
//
// free_sized of a large block with the size of a small one.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    HT_CHECK(sized != NULL, "there is no free_sized");
    sized(ht_block(262144), 64);
    _exit(0);
}
