// A C program opens two libraries, each linked with a C++ library of its own: operator new asks the caller's one for its handler.
// preload only
#include "../support/promise.h"

#include <dlfcn.h>

typedef int (*user)(void);

static user open_user(const char *program, int number)
{
    char path[4096];
    const char *slash = strrchr(program, '/');
    const int folder = slash != NULL ? (int)(slash - program) + 1 : 0;
    snprintf(path, sizeof path, "%.*slibcxx_user_%d.so", folder, program, number);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HT_CHECK(library != NULL, "dlopen: %s", dlerror());
    user function;
    *(void **)(&function) = dlsym(library, "ht_asks_its_own");
    HT_CHECK(function != NULL, "dlsym: %s", dlerror());
    return function;
}

int main(int argc, char **argv)
{
    (void)argc;
    ht_start();
    const user users[] = {open_user(argv[0], 1), open_user(argv[0], 2)};
    for (int i = 0; i < 4; i++) {
        HT_CHECK(users[i % 2]() == 1, "library %d: another's handler was asked", i % 2 + 1);
    }
    return 0;
}
