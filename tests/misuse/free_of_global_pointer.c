// expect: hakmem: invalid free: 0x[0-9a-f]+ was not allocated by hakmem
//
// free of a variable of the program.
#include "../support/misuse.h"

int main(void)
{
    static char variable[64];
    ht_free(variable);
    _exit(0);
}
