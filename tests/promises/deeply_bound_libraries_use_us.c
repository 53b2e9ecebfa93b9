// glibc only: musl has no RTLD_DEEPBIND
// A library that is loaded with RTLD_DEEPBIND, so that it looks for malloc in the
// C library first, finds this allocator there, and the C library's other names
// as usual. dlopen still searches where its caller says.
#include "../support/promise.h"

static const char *const names[] = {"malloc",
                                    "calloc",
                                    "realloc",
                                    "reallocarray",
                                    "free",
                                    "aligned_alloc",
                                    "posix_memalign",
                                    "memalign",
                                    "valloc",
                                    "pvalloc",
                                    "malloc_usable_size",
                                    "malloc_trim",
                                    "mallinfo2",
                                    "__libc_malloc",
                                    "__libc_free"};

enum { NAMES = sizeof names / sizeof *names };

static void *open_deeply(const char *name, bool in_space)
{
    const int mode = RTLD_NOW | RTLD_DEEPBIND;
    return in_space ? dlmopen(LM_ID_BASE, name, mode) : dlopen(name, mode);
}

static void check(bool in_space)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    HT_CHECK(libc != NULL, "no C library: %s", dlerror());
    void *length = dlsym(libc, "strlen");
    void *before = malloc(100);
    if (open_deeply("libz.so.1", in_space) == NULL && open_deeply("libm.so.6", in_space) == NULL) {
        HT_SKIP("neither libz nor libm to be loaded");
    }
    for (size_t i = 0; i < NAMES; i++) {
        const void *found = dlsym(libc, names[i]); // an older one lacks some
        HT_CHECK(found == NULL || found == dlsym(RTLD_DEFAULT, names[i]),
                 "%s is still the C library's",
                 names[i]);
    }
    HT_CHECK(length != NULL && dlsym(libc, "strlen") == length, "strlen is another");
    void (*deep_free)(void *);
    *(void **)(&deep_free) = dlsym(libc, "free");
    deep_free(before);
    if (strstr(ht_malloc_file(), "libhakmem") != NULL) {
        void *own = dlopen("$ORIGIN/../libhakmem.so", RTLD_LAZY | RTLD_NOLOAD);
        HT_CHECK(own != NULL, "dlopen took the library for its caller: %s", dlerror());
    }
}

int main(void)
{
    ht_start();
    const pid_t child = fork(); // where nothing was deeply bound before
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        check(true);
        _exit(0);
    }
    ht_wait_child(child, "the one that opens in a name space");
    check(false);
    return 0;
}
