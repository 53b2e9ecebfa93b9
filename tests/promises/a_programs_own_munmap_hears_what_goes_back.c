// sleeps
// not tagged: it compares addresses, which have tags there
// A program, or a library that is preloaded, may define munmap, madvise and mremap itself, and hears of all memory that is given back.
#include "../support/listener.h"

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

int main(void)
{
    ht_start();
    lt_count = 0;
    lt_check();
    return 0;
}
