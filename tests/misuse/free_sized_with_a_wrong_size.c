// expect: hakmem: wrong size: 0x[0-9a-f]+ was freed as 1000 bytes but is a block of 64 bytes
// env: HAKMEM_CHECK=1
//
// free_sized with a size other than the requested one.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    HT_CHECK(sized != NULL, "there is no free_sized");
    sized(ht_block(64), 1000);
    _exit(0);
}
