// pages.h -- reading an interpreter's objects, whatever their pointers say.
//
// Layer     python (may include: base, os, meta, front, stacks)
// Owns      a table of pages that could be read a moment ago.
// Threads   any, also in a signal handler: no lock, no allocation.
// Fails     false for what cannot be read.
//
// The kernel says whether a page can be read, which takes a system call. What it has said holds for a second: an
// interpreter does not unmap what a running thread's frames lead to (docs/decisions/0050).
#ifndef HAK_PYTHON_PAGES_H
#define HAK_PYTHON_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct hak_pages {
    uint64_t second;   // about: of the clock when the walk began
    uintptr_t last[2]; // the pages that were looked at last
};

HAK_INLINE struct hak_pages hak_pages_at(uint64_t now_ns)
{
    return (struct hak_pages){.second = now_ns >> 30};
}

enum { HAK_PAGES_LOG2 = 12 }; // of the smallest pages there are
HAK_INTERNAL bool hak_pages_are_readable_slow(struct hak_pages *pages,
                                              uintptr_t start,
                                              size_t bytes);

HAK_INLINE bool hak_pages_are_readable(struct hak_pages *pages, uintptr_t start, size_t bytes)
{
    const uintptr_t page = start >> HAK_PAGES_LOG2;
    const bool is_last = page == pages->last[0] || page == pages->last[1];
    return (HAK_LIKELY(is_last) && page != 0 && (start + bytes - 1) >> HAK_PAGES_LOG2 == page) ||
           hak_pages_are_readable_slow(pages, start, bytes);
}

// 0 where nothing can be read. `bytes`: 1, 2, 4 or 8.
HAK_INTERNAL uint64_t hak_pages_number(struct hak_pages *pages, uintptr_t address, unsigned bytes);

#endif
