// malloc_debug.c -- is the C library's debugging malloc in front of us?
//
// Built     into the shared library only
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "front/libc_heap.h"
#include "hakmem/hakmem.h"

// Runs after the constructor of hakmem.c, which is the first.
__attribute__((constructor(102))) static void start(void)
{
    Dl_info info;
    void *theirs;
    void *(*found)(size_t) = malloc;
    memcpy(&theirs, &found, sizeof theirs);
    if (found == hak_malloc || dladdr(theirs, &info) == 0 || info.dli_fname == NULL ||
        strstr(info.dli_fname, "libc_malloc_debug.so") == NULL) {
        return;
    }
    struct hak_libc_heap heap;
    *(void **)&heap.malloc = dlsym(RTLD_NEXT, "__libc_malloc");
    *(void **)&heap.realloc = dlsym(RTLD_NEXT, "__libc_realloc");
    *(void **)&heap.memalign = dlsym(RTLD_NEXT, "__libc_memalign");
    *(void **)&heap.free = dlsym(RTLD_NEXT, "__libc_free");
    if (heap.malloc != NULL && heap.realloc != NULL && heap.memalign != NULL && heap.free != NULL) {
        hak_libc_heap = heap;
    }
}
