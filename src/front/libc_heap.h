// libc_heap.h -- the C library's own heap, for its debugging malloc.
//
// Threads   any; hak_libc_heap is written once, before the program's main.
//
// libc_malloc_debug.so, preloaded before us (mtrace, mcheck, MALLOC_CHECK_), takes its blocks by the names
// __libc_malloc and so on, and looks for their size in the header that the C library's blocks have in front. Ours have
// none, so behind that library these names are the C library's. Blocks that it got from us before stay ours.
#pragma once

#include "base/compiler.h"

struct hak_libc_heap {
    void *(*malloc)(size_t bytes); // all NULL: the names are ours
    void *(*realloc)(void *block, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void (*free)(void *block);
};
HAK_INTERNAL extern struct hak_libc_heap hak_libc_heap;
