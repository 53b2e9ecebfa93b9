// clear.c -- hak_os_clear and hak_os_copy: zeros for a block, and a copy of one, of which maybe not all pages are there.
#include <string.h>

#include "base/bits.h"
#include "os/os.h"

enum { LOOK_BYTES = 4096 }; // a page, or a part of one

// Where no page is a look finds the kernel's page of zeros, which is nobody's memory. Most pages with something else have it
// where they begin. A page that the kernel takes meanwhile (MADV_FREE) is zeros from then on.
static const char zeros[LOOK_BYTES];

void hak_os_clear(void *start, size_t bytes)
{
    char *const end = (char *)start + bytes;
    for (char *from = start; from < end; from += LOOK_BYTES) {
        const size_t part = (size_t)(end - from) < LOOK_BYTES ? (size_t)(end - from) : LOOK_BYTES;
        if (memcmp(from, zeros, part) != 0) {
            memset(from, 0, part);
        }
    }
}

// By pages of the target: the source may begin in the middle of one.
void hak_os_copy(void *target, const void *source, size_t bytes)
{
    char *to = target;
    const char *from = source;
    const char *const end = from + bytes;
    while (from < end) {
        const size_t part =
            hak_least(LOOK_BYTES - (uintptr_t)to % LOOK_BYTES, (size_t)(end - from));
        if (memcmp(from, zeros, part) != 0) {
            memcpy(to, from, part);
        }
        to += part;
        from += part;
    }
}
