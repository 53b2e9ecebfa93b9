// libc_heap.h -- the C library's own heap, for its debugging malloc.
//
// Threads   any; hak_libc_heap is written once, before the program's main.
//
// libc_malloc_debug.so (mtrace, mcheck, MALLOC_CHECK_), if preloaded before us, allocates by __libc_malloc and the
// like, and reads a block's size from the header that the C library puts in front of it. Our blocks have no header. So
// with that library, these names lead to the C library's functions. Blocks that it got from us before stay ours.
#pragma once

#include "base/compiler.h"

struct hak_libc_heap {
    void *(*malloc)(size_t bytes); // all NULL: the names are ours
    void *(*realloc)(void *block, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void (*free)(void *block);
};
HAK_INTERNAL extern struct hak_libc_heap hak_libc_heap;
