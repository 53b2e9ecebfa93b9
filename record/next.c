// next.c -- finding the program's own allocator.
#include "next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/atomic.h"

struct next_functions hak_next;

HAK_ALIGNED(16) char hak_early_memory[EARLY_BYTES];
static _Atomic(size_t) early_used;

void *hak_early_alloc(size_t bytes)
{
    const size_t whole = (bytes + 31) & ~(size_t)15; // with 16 bytes before the block for its size
    const size_t at = hak_add_relaxed(&early_used, whole);
    if (whole < bytes || at + whole > EARLY_BYTES) {
        return NULL;
    }
    *(size_t *)(void *)(hak_early_memory + at) = bytes;
    return hak_early_memory + at + 16;
}

size_t hak_early_size(const void *block)
{
    return *(const size_t *)(const void *)((const char *)block - 16);
}

void *hak_next_symbol(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL) {
        // A library that was opened with RTLD_LOCAL finds our symbol first, but we do not find its.
        void *runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        symbol = runtime != NULL ? dlsym(runtime, name) : NULL;
    }
    return symbol;
}

// ISO C has no cast from an object's address to a function's; POSIX says that it works.
#define FIND(name) *(void **)(&hak_next.name) = dlsym(RTLD_NEXT, #name)

void hak_next_find(void)
{
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(free);
    if (hak_next.malloc == NULL || hak_next.calloc == NULL || hak_next.realloc == NULL ||
        hak_next.free == NULL) {
        static const char line[] = "hakmem record: no library of this program defines malloc\n";
        (void)!write(STDERR_FILENO, line, sizeof line - 1);
        abort();
    }
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(malloc_usable_size);
}
