// expect: hakmem: invalid (free|realloc): 0x[0-9a-f]+ was not allocated by hakmem
//
// realloc to no bytes frees; an address that is no block cannot be freed.
#include "../support/misuse.h"

int main(void)
{
    static char variable[64];
    char *block = ht_hide(realloc(ht_hide(variable), ht_hide_size(0)));
    _exit(block == NULL);
}
