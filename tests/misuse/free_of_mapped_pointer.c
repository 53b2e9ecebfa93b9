// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// free of an address from mmap.
#include "../support/misuse.h"

#include <sys/mman.h>

int main(void)
{
    ht_free(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    _exit(0);
}
