// request.h -- a request of the program for memory.
#pragma once

#include <stddef.h>

// The alignment of malloc's blocks.
enum { HAK_MALLOC_ALIGNMENT = 16 };

struct hak_request {
    size_t bytes;
    size_t alignment;
    const void *site; // where the program's call returns to
};

// How to serve a request, beside its size: flags, and from HAK_WAY_ALIGN_BIT on the logarithm of an alignment.
enum hak_way {
    HAK_WAY_SHORT = 1,     // small: in slabs of short-lived blocks
    HAK_WAY_LONG = 2,      // small: in slabs of long-lived blocks
    HAK_WAY_UNKEPT = 4,    // large: not into BigCache when it is freed
    HAK_WAY_UNMAP = 8,     // large: a mapping of its own, unmapped when it is freed
    HAK_WAY_HUGE = 16,     // large, from 2 MiB: a mapping of its own that asks for huge pages
    HAK_WAY_ZERO = 32,     // zeroed, as from calloc
    HAK_WAY_ALIGN_BIT = 6, // the first of four bits
    HAK_WAY_GROWN = 1024,  // large: a growing block moves into it; not a site rule's
};
#define HAK_WAYS_ALIGN_LOG2(ways) ((ways) >> HAK_WAY_ALIGN_BIT & 15)

// Why a request was refused.
enum hak_refuse_reason {
    HAK_REFUSE_THRESHOLD,  // no class and no pool takes this size
    HAK_REFUSE_EXHAUSTION, // a table or range of ours is used up
    HAK_REFUSE_MEMORY,     // no memory: the kernel or a limit of ours refused it
    HAK_REFUSE_INJECTED,   // a test wants it to fail
};
