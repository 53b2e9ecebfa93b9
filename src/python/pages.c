// pages.c -- see pages.h.
#include "python/pages.h"

#include <string.h>

#include "os/os.h"

enum { BYTES_MAX = 1 << 20 };

_Atomic(uint64_t) hak_pages_readable[1U << HAK_PAGES_READABLE_LOG2];

static HAK_NOINLINE bool ask(uintptr_t page, uint64_t word)
{
    if (page == 0 || !hak_os_can_read((const void *)(page << HAK_PAGES_LOG2))) {
        return false;
    }
    hak_store_relaxed(hak_pages_slot(page), word);
    return true;
}

bool hak_pages_are_readable_slow(struct hak_pages *pages, uintptr_t start, size_t bytes)
{
    const uintptr_t limit = (uintptr_t)1 << HAK_PAGES_ADDRESS_BITS;
    if (start >= limit - BYTES_MAX || bytes > BYTES_MAX) {
        return false;
    }
    const uintptr_t last = (start + bytes - 1) >> HAK_PAGES_LOG2;
    for (uintptr_t page = start >> HAK_PAGES_LOG2; page <= last; page++) {
        const uint64_t word = page | pages->second;
        if (HAK_UNLIKELY(hak_load_relaxed(hak_pages_slot(page)) != word) && !ask(page, word)) {
            return false;
        }
        pages->last = page;
    }
    return true;
}

uint64_t hak_pages_number(struct hak_pages *pages, uintptr_t address, unsigned bytes)
{
    uint64_t number = 0;
    if (hak_pages_are_readable(pages, address, bytes)) {
        memcpy(&number, (const void *)address, bytes);
    }
    return number;
}
