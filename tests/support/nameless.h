// nameless.h -- files without a name in a folder: a test that fails, or is killed, leaves none behind.
//
// A path leads to such a file, for this program and those that it starts, as long as the file is open here.
#ifndef HAK_TESTS_SUPPORT_NAMELESS_H
#define HAK_TESTS_SUPPORT_NAMELESS_H

#include "promise.h" // first: it asks for all that libc has

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { HT_NAMELESS_PATH = 32 };

static inline void ht_nameless_path(int file, char path[HT_NAMELESS_PATH])
{
    snprintf(path, HT_NAMELESS_PATH, "/proc/self/fd/%d", file);
}

// A file with this text. Returns the descriptor to close.
static inline int ht_nameless_file(const char *text, char path[HT_NAMELESS_PATH])
{
    const int file = memfd_create("test", 0);
    HT_CHECK(file >= 0, "no file: errno %d", errno);
    HT_CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text), "no file to write");
    ht_nameless_path(file, path);
    return file;
}

// A pipe as mkfifo makes it, with neither side open.
static inline int ht_nameless_pipe(char path[HT_NAMELESS_PATH])
{
    char folder[] = "/tmp/hakmem-pipe-XXXXXX";
    HT_CHECK(mkdtemp(folder) != NULL, "no folder: errno %d", errno);
    char name[64];
    snprintf(name, sizeof name, "%s/pipe", folder);
    const int made = mkfifo(name, 0600);
    const int file = open(name, O_PATH);
    unlink(name);
    rmdir(folder);
    HT_CHECK(made == 0 && file >= 0, "no pipe: errno %d", errno);
    ht_nameless_path(file, path);
    return file;
}

#endif
