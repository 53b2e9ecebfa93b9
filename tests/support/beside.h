// beside.h -- files that are built beside the test.
#ifndef HAK_TESTS_SUPPORT_BESIDE_H
#define HAK_TESTS_SUPPORT_BESIDE_H

#include "promise.h" // first: it asks for all that libc has

enum { HT_BESIDE_PATH = 4096 };

// The path of the file `name` in the folder of this program. Returns `path`.
static inline const char *ht_beside(const char *name, char path[HT_BESIDE_PATH])
{
    const ssize_t length = readlink("/proc/self/exe", path, HT_BESIDE_PATH - 1);
    HT_CHECK(length > 0, "readlink failed");
    path[length] = '\0';
    char *const file = strrchr(path, '/') + 1;
    const size_t room = (size_t)(path + HT_BESIDE_PATH - file);
    HT_CHECK((size_t)snprintf(file, room, "%s", name) < room, "the path is too long");
    return path;
}

#endif
