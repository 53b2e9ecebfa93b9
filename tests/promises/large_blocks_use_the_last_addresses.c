// native only
// If fewer addresses are left (RLIMIT_AS) than the library maps at a time, a block that fits is served, and can be written.
#include <stdlib.h>
#include <string.h>

#include "../support/addresses.h"

enum { LEFT = 3 * 1024 * 1024, LEAST = 64 * 1024 };

int main(void)
{
    ht_start();
    free(malloc(1));
    ht_limit_addresses(LEFT);
    ht_exhaust(100); // of the memory mapped before
    for (size_t bytes = LEFT / 2; bytes >= LEAST; bytes /= 2) {
        char *block = malloc(bytes);
        HT_CHECK(block != NULL, "%zu bytes were refused, with room for %d", bytes, LEFT);
        memset(block, 1, bytes);
        free(block);
    }
    return 0;
}
