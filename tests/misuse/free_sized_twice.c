// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// free_sized, then free.
#include "../support/misuse.h"

int main(void)
{
    void (*sized)(void *, size_t);
    *(void **)(&sized) = dlsym(RTLD_DEFAULT, "free_sized");
    HT_CHECK(sized != NULL, "there is no free_sized");
    char *block = ht_block(64);
    sized(block, 64);
    ht_free(block);
    _exit(0);
}
