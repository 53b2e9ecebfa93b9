// expect: hakmem: wrong size: 0x[0-9a-f]+ was freed as 1000 bytes but is a block of 64 bytes
// env: HAKMEM_CHECK=1
//
// C++'s operator delete with a size.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "_ZdlPvm");
    HT_CHECK(sized != NULL, "there is no operator delete with a size");
    sized(ht_block(64), 1000);
    _exit(0);
}
