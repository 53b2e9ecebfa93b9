// addresses.h -- brings a program to the end of its memory: an address space limit (RLIMIT_AS), and blocks until malloc refuses.
#ifndef HT_SUPPORT_ADDRESSES_H
#define HT_SUPPORT_ADDRESSES_H

#include "memory.h"

#include <stdint.h>
#include <sys/resource.h>

// The process may map this many bytes more than now; SIZE_MAX: as many as it likes.
static inline void ht_limit_addresses(size_t more)
{
    struct rlimit limit;
    const size_t now = (size_t)ht_proc_number("/proc/self/status", "VmSize") * HT_KIB;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = more == SIZE_MAX ? RLIM_INFINITY : now + more;
    HT_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
}

// Allocate blocks of that size until malloc refuses.
static inline void ht_exhaust(size_t bytes)
{
    while (ht_hide(malloc(bytes)) != NULL) {
    }
}

// The same with all sizes.
static inline void ht_exhaust_all(void)
{
    for (size_t bytes = 64 * HT_MIB; bytes >= 16; bytes /= 2) {
        ht_exhaust(bytes);
    }
}

#endif
