// clear.c -- hak_os_clear: zeros for a block that was used before, of which maybe not all pages are there.
#include <string.h>

#include "os/os.h"

enum { LOOK_BYTES = 4096 }; // a page, or a part of one

// Where no page is a look finds the kernel's page of zeros, which is nobody's memory. Most pages with something else have it
// where they begin. A page that the kernel takes meanwhile (MADV_FREE) is zeros from then on.
void hak_os_clear(void *start, size_t bytes)
{
    static const char zeros[LOOK_BYTES];
    char *const end = (char *)start + bytes;
    for (char *from = start; from < end; from += LOOK_BYTES) {
        const size_t part = (size_t)(end - from) < LOOK_BYTES ? (size_t)(end - from) : LOOK_BYTES;
        if (memcmp(from, zeros, part) != 0) {
            memset(from, 0, part);
        }
    }
}
