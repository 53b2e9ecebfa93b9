// pages.c -- see pages.h.
#include "python/pages.h"

#include <string.h>

#include "base/atomic.h"
#include "os/os.h"

enum { ADDRESS_BITS = 48, READABLE_LOG2 = 10, BYTES_MAX = 1 << 20 };

// The page's number, and in the bits that it leaves the second in which it could be read.
static _Atomic(uint64_t) readable[1U << READABLE_LOG2];

static HAK_NOINLINE bool ask(uintptr_t page, _Atomic(uint64_t) *slot, uint64_t word)
{
    if (!hak_os_can_read((const void *)page)) {
        return false;
    }
    hak_store_relaxed(slot, word);
    return true;
}

bool hak_pages_are_readable_slow(struct hak_pages *pages, uintptr_t start, size_t bytes)
{
    const uintptr_t limit = (uintptr_t)1 << ADDRESS_BITS;
    if (start >= limit - BYTES_MAX || bytes > BYTES_MAX) {
        return false;
    }
    const uintptr_t last = (start + bytes - 1) >> HAK_PAGES_LOG2;
    for (uintptr_t page = start >> HAK_PAGES_LOG2; page <= last; page++) {
        const uint64_t word = page | pages->second << (ADDRESS_BITS - HAK_PAGES_LOG2);
        _Atomic(uint64_t) *slot =
            &readable[(page * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - READABLE_LOG2)];
        if (HAK_UNLIKELY(hak_load_relaxed(slot) != word) &&
            (page == 0 || !ask(page << HAK_PAGES_LOG2, slot, word))) {
            return false;
        }
        if (page != pages->last[0]) {
            pages->last[1] = pages->last[0];
            pages->last[0] = page;
        }
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
