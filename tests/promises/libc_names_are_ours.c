// glibc only: musl has no such names
// preload only
// Programs and libraries that bind to __libc_malloc and similar names, or to the old
// cfree, get this allocator too: a block of one name can be freed by another.
#include "../support/promise.h"

static void *find(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    HT_CHECK(address != NULL, "%s is missing", name);
    HT_CHECK(dladdr(address, &info) != 0, "%s is nowhere", name);
    HT_CHECK(ht_is_any() || strcmp(info.dli_fname, ht_malloc_file()) == 0,
             "%s is in %s",
             name,
             info.dli_fname);
    return address;
}

int main(void)
{
    ht_start();
    void *(*libc_malloc)(size_t);
    void *(*libc_calloc)(size_t, size_t);
    void *(*libc_realloc)(void *, size_t);
    void *(*libc_memalign)(size_t, size_t);
    void *(*libc_valloc)(size_t);
    void *(*libc_pvalloc)(size_t);
    void (*libc_free)(void *);
    *(void **)(&libc_malloc) = find("__libc_malloc");
    *(void **)(&libc_calloc) = find("__libc_calloc");
    *(void **)(&libc_realloc) = find("__libc_realloc");
    *(void **)(&libc_memalign) = find("__libc_memalign");
    *(void **)(&libc_valloc) = find("__libc_valloc");
    *(void **)(&libc_pvalloc) = find("__libc_pvalloc");
    *(void **)(&libc_free) = find("__libc_free");
    for (size_t size = 1; size < 4 * HT_MIB; size *= 3) {
        free(libc_malloc(size));
        free(libc_calloc(1, size));
        free(libc_realloc(malloc(10), size));
        free(libc_memalign(256, size));
        free(libc_valloc(size));
        free(libc_pvalloc(size));
        libc_free(ht_hide(malloc(size)));
        libc_free(ht_hide(memalign(4096, size)));
    }
    void (*old_cfree)(void *);
    // Old programs ask for libc's version of it; a name without a version satisfies them.
    *(void **)(&old_cfree) = dlsym(RTLD_DEFAULT, "cfree");
    if (old_cfree == NULL) {
        *(void **)(&old_cfree) = dlvsym(RTLD_DEFAULT, "cfree", "GLIBC_2.2.5");
    }
    HT_CHECK(old_cfree != NULL, "cfree is missing");
    old_cfree(ht_hide(malloc(100)));
    return 0;
}
