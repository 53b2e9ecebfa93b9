// own_munmap.h -- a program that defines munmap, madvise and mremap itself, and so listens to them (listener.h).
#ifndef HAK_TESTS_SUPPORT_OWN_MUNMAP_H
#define HAK_TESTS_SUPPORT_OWN_MUNMAP_H

#include "listener.h"

int munmap(void *start, size_t bytes)
{
    return lt_munmap(start, bytes);
}

int madvise(void *start, size_t bytes, int advice)
{
    return lt_madvise(start, bytes, advice);
}

void *mremap(void *start, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *target = va_arg(arguments, void *);
    va_end(arguments);
    return lt_mremap(start, old_bytes, bytes, flags, target);
}

#endif
