// Blocks may be anywhere in the library's window of addresses: the map becomes writable
// part by part, and a heap that grows from one part into the next must not fault.
// 40 GiB of addresses, of which only the ends of each block are touched, cross every boundary.
#include <stdlib.h>

#include "../support/promise.h"

enum { BLOCKS = 160 };
#define BLOCK_BYTES ((size_t)256 << 20)

int main(void)
{
    static char *blocks[BLOCKS];
    ht_start();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK_BYTES);
            if (blocks[i] == NULL) {
                return 77; // an address space limit
            }
            blocks[i][0] = (char)i;
            blocks[i][BLOCK_BYTES - 1] = (char)i;
        }
        for (int i = 0; i < BLOCKS; i++) {
            HT_CHECK(blocks[i][0] == (char)i && blocks[i][BLOCK_BYTES - 1] == (char)i,
                     "a block has changed");
            free(blocks[i]);
        }
    }
    return 0;
}
