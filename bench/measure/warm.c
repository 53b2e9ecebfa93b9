#include "warm.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOUCH_EVERY = 4096 };

static void touch(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    madvise(memory, bytes, MADV_HUGEPAGE); // the fastest way to many pages
    for (size_t at = 0; at < bytes; at += TOUCH_EVERY) {
        ((volatile char *)memory)[at] = 1;
    }
}

void warm_memory(size_t mib)
{
    const pid_t child = mib > 0 ? fork() : -1;
    if (child == 0) {
        touch(mib << 20);
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
}
