// A C program opens a C++ library, which hides its names from all others. The library catches std::bad_alloc, and has a
// new-handler.
// with C++
#include "../support/promise.h"

#include <dlfcn.h>

static void call(void *library, const char *name)
{
    int (*function)(void);
    *(void **)(&function) = dlsym(library, name);
    HT_CHECK(function != NULL, "dlsym: %s", dlerror());
    HT_CHECK(function() == 1, "%s found it otherwise", name);
}

int main(int argc, char **argv)
{
    (void)argc;
    ht_start();
    char path[4096];
    const char *slash = strrchr(argv[0], '/');
    const int folder = slash != NULL ? (int)(slash - argv[0]) + 1 : 0;
    snprintf(path, sizeof path, "%.*sliblate_cxx.so", folder, argv[0]);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HT_CHECK(library != NULL, "dlopen: %s", dlerror());
    call(library, "ht_late_nothrow");
    call(library, "ht_late_handler_throws");
    call(library, "ht_late_throw");
    return 0;
}
