// cxx_user.c -- a library that is linked with one of two C++ libraries (cxx_runtime.c).
#include "cxx_runtime.h"

#include <stddef.h>

void *new_nothrow(size_t bytes, const void *tag) __asm__("_ZnwmRKSt9nothrow_t");
int ht_asks_its_own(void);

// 1: its own handler was called once, and there is no block.
int ht_asks_its_own(void)
{
    ht_runtime_arm();
    const void *block = new_nothrow((size_t)1 << 60, "");
    __asm__ volatile("" : "+r"(block)); // clang removes an unused allocation
    return block == NULL && ht_runtime_calls() == 1;
}
