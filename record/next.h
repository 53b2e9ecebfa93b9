// next.h -- the program's own allocator: the functions that the next library in order defines.
//
// Threads   hak_next_find: once, before any other call. The rest: any.
// Fails     a function that no library has is NULL, but for malloc, calloc, realloc and free.
#ifndef HAK_RECORD_NEXT_H
#define HAK_RECORD_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct next_functions {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
};

HAK_INTERNAL extern struct next_functions hak_next;

HAK_INTERNAL void hak_next_find(void);
// Find a function by its name in the libraries behind this one, else in the C++ runtime, which the program
// may have opened with RTLD_LOCAL. NULL when there is none.
HAK_INTERNAL void *hak_next_symbol(const char *name);

// The dynamic linker may call malloc while it looks for malloc: then blocks come from a small array.
HAK_INTERNAL void *hak_early_alloc(size_t bytes);
#define EARLY_BYTES 65536
HAK_INTERNAL extern char hak_early_memory[EARLY_BYTES];

HAK_INLINE bool hak_early_owns(const void *block)
{
    return (uintptr_t)block - (uintptr_t)hak_early_memory < EARLY_BYTES;
}

HAK_INTERNAL size_t hak_early_size(const void *block);

#endif
