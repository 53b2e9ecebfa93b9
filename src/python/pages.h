// pages.h -- reading an interpreter's objects safely, wherever their pointers lead.
//
// Owns      hak_pages_readable: pages that could be read a moment ago.
// Threads   any, also in a signal handler: no lock, no allocation.
// Fails     false for memory that cannot be read.
//
// A system call asks the kernel whether a page can be read. Its answer is used for a second: an interpreter does not
// unmap what a running thread's frames lead to (docs/decisions/0050).
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

// The state of a walk for one kind of object, which lie close together: frames, or the objects to which these lead.
struct hak_pages {
    uint64_t second; // about that of the walk's start, in the bits above a page's number
    uintptr_t last;  // the page that was looked at last
};

enum {
    HAK_PAGES_LOG2 = 12, // of the smallest pages there are
    HAK_PAGES_ADDRESS_BITS = 48,
    HAK_PAGES_READABLE_LOG2 = 10,
};
// A page's number and the second in which it could be read.
HAK_INTERNAL extern _Atomic(uint64_t) hak_pages_readable[1U << HAK_PAGES_READABLE_LOG2];

HAK_INLINE struct hak_pages hak_pages_at(uint64_t now_ns)
{
    return (struct hak_pages){
        .second = ((now_ns >> 30) + 1) << (HAK_PAGES_ADDRESS_BITS - HAK_PAGES_LOG2), // never 0
        .last = UINTPTR_MAX,
    };
}

HAK_INLINE _Atomic(uint64_t) *hak_pages_slot(uintptr_t page)
{
    return &hak_pages_readable[(page * UINT64_C(0x9E3779B97F4A7C15)) >>
                               (64 - HAK_PAGES_READABLE_LOG2)];
}

HAK_INTERNAL bool hak_pages_are_readable_slow(struct hak_pages *pages,
                                              uintptr_t start,
                                              size_t bytes);

// Are the bytes in a single page that could be read a moment ago? False: the kernel may have to be asked.
HAK_INLINE bool hak_pages_are_known(struct hak_pages *pages, uintptr_t start, size_t bytes)
{
    const uintptr_t page = start >> HAK_PAGES_LOG2;
    if (HAK_UNLIKELY((start + bytes - 1) >> HAK_PAGES_LOG2 != page)) {
        return false;
    }
    if (HAK_LIKELY(page == pages->last)) {
        return true;
    }
    if (HAK_UNLIKELY(hak_load_relaxed(hak_pages_slot(page)) != (page | pages->second) ||
                     start >> HAK_PAGES_ADDRESS_BITS != 0)) {
        return false;
    }
    pages->last = page;
    return true;
}

HAK_INLINE bool hak_pages_are_readable(struct hak_pages *pages, uintptr_t start, size_t bytes)
{
    return HAK_LIKELY(hak_pages_are_known(pages, start, bytes)) ||
           hak_pages_are_readable_slow(pages, start, bytes);
}

// The number at `address`; 0 if it cannot be read. `bytes`: 1, 2, 4 or 8.
HAK_INTERNAL uint64_t hak_pages_number(struct hak_pages *pages, uintptr_t address, unsigned bytes);
