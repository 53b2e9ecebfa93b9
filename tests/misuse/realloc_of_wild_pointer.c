// expect: hakmem: invalid realloc: 0x[0-9a-f]+ was not allocated by hakmem
//
// realloc of a variable on the stack.
#include "../support/misuse.h"

int main(void)
{
    char variable[64] = "";
    char *block = ht_hide(realloc(ht_hide(variable), 100));
    _exit(block == NULL);
}
