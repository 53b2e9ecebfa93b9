// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 64 bytes[)] is already free
// env: HAKMEM_CHECK=1
//
// With HAKMEM_CHECK=1 the second free itself ends the program, which never reaches _exit.
#include "../support/misuse.h"

int main(void)
{
    char *block = ht_block(64);
    ht_free(block);
    ht_free(block);
    _exit(0);
}
