// request.h -- what the program asks for.
#pragma once

#include <stddef.h>

// What malloc's blocks are aligned to.
enum { HAK_MALLOC_ALIGNMENT = 16 };

struct hak_request {
    size_t bytes;
    size_t alignment;
    const void *site; // where the program's call returns to
};

// How a request is served beyond its size, as bits. Those from HAK_WAY_ALIGN_BIT on are the logarithm of an alignment.
enum hak_way {
    HAK_WAY_SHORT = 1,     // small blocks: in slabs of short-lived ones
    HAK_WAY_LONG = 2,      // small blocks: in slabs of long-lived ones
    HAK_WAY_UNKEPT = 4,    // large: not into BigCache when it is freed
    HAK_WAY_UNMAP = 8,     // large: a mapping of its own, which goes with the block
    HAK_WAY_HUGE = 16,     // large, from 2 MiB: a mapping of its own that asks for huge pages
    HAK_WAY_ZERO = 32,     // as from calloc
    HAK_WAY_ALIGN_BIT = 6, // four of them
    HAK_WAY_GROWN = 1024,  // large: for what has to move to grow; no rule says so
};
#define HAK_WAYS_ALIGN_LOG2(ways) ((ways) >> HAK_WAY_ALIGN_BIT & 15)

// Why a request was refused.
enum hak_refuse_reason {
    HAK_REFUSE_THRESHOLD,  // no class and no pool takes this size
    HAK_REFUSE_EXHAUSTION, // something of ours is used up
    HAK_REFUSE_MEMORY,     // there is none: the kernel refused, or a limit of ours did
    HAK_REFUSE_INJECTED,   // a test wants it to fail
};
