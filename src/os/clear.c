// clear.c -- hak_os_clear and hak_os_copy: clear and copy blocks, some of whose pages may not be resident.
#include <string.h>

#include "base/bits.h"
#include "os/os.h"

enum { LOOK_BYTES = 4096 }; // a page, or a part of one

static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

// A read of an untouched page maps the kernel's zero page, which takes no memory. Most other pages have something besides zeros
// near their start. A page that the kernel takes meanwhile (MADV_FREE) is zeros from then on.
// A step is a cache line. memcmp would read a second page of zeros, and musl's compares byte by byte.
static bool is_zero(const char *at, size_t bytes)
{
    const char *const end = at + bytes;
    for (; end - at >= 64; at += 64) {
        const uint64_t first = word_at(at) | word_at(at + 8) | word_at(at + 16) | word_at(at + 24);
        const uint64_t last =
            word_at(at + 32) | word_at(at + 40) | word_at(at + 48) | word_at(at + 56);
        if ((first | last) != 0) {
            return false;
        }
    }
    while (at < end && *at == 0) {
        at++;
    }
    return at == end;
}

void hak_os_clear(void *start, size_t bytes)
{
    char *const end = (char *)start + bytes;
    for (char *from = start; from < end; from += LOOK_BYTES) {
        const size_t part = (size_t)(end - from) < LOOK_BYTES ? (size_t)(end - from) : LOOK_BYTES;
        if (!is_zero(from, part)) {
            memset(from, 0, part);
        }
    }
}

// A step is a page of the target; the source may begin in the middle of a page.
void hak_os_copy(void *target, const void *source, size_t bytes)
{
    char *to = target;
    const char *from = source;
    const char *const end = from + bytes;
    while (from < end) {
        const size_t part =
            hak_least(LOOK_BYTES - (uintptr_t)to % LOOK_BYTES, (size_t)(end - from));
        if (!is_zero(from, part)) {
            memcpy(to, from, part);
        }
        to += part;
        from += part;
    }
}
