// pool.c -- the recorder's part of meta/pool.h: code.c takes an item for each object, and keeps it.
#include "meta/pool.h"

#include <errno.h>
#include <sys/mman.h>

// Without a lock, as a signal handler may have interrupted the recorder.
void *hak_pool_take(size_t bytes)
{
    const int error = errno;
    void *item = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = error;
    return item != MAP_FAILED ? item : NULL;
}
