// expect: hakmem: double free: 0x[0-9a-f]+ [(]block of 48 bytes[)] is already free; HAKMEM_CHECK=1 stops at the second free itself
//
// There are other frees between the two, as in real programs.
#include "../support/misuse.h"

int main(void)
{
    char *others[20];
    char *block = ht_block(48);
    for (size_t i = 0; i < 20; i++) {
        others[i] = ht_block(48);
    }
    ht_free(block);
    for (size_t i = 0; i < 20; i++) {
        ht_free(others[i]);
    }
    ht_free(block);
    return 0;
}
