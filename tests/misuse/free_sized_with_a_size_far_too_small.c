// expect: hakmem: wrong size: 0x[0-9a-f]+ was freed as 64 bytes but is a block of 1024 bytes
// env: HAKMEM_CHECK=1
//
// free_sized with a size that nothing explains: no pool was ever off, and no rule asks for an alignment.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    HT_CHECK(sized != NULL, "there is no free_sized");
    sized(ht_block(1000), 64);
    _exit(0);
}
