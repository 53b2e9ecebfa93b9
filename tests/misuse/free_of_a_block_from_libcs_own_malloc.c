// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// A library that is bound to libc's malloc itself passes a block to the program.
#include "../support/misuse.h"

int main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *(*libc_malloc)(size_t);
    *(void **)(&libc_malloc) = dlsym(libc, "malloc");
    ht_free(libc_malloc(100));
    _exit(0);
}
