// syscall.h -- a system call without errno.
//
// Included  by files of its layer only.
//
// libc's syscall() stores errno, which lives in thread-local storage: free() must
// preserve it. Returns the value, or -errno.
#pragma once

#include <sys/syscall.h>

#include "base/compiler.h"

#if HAK_TSAN
#    include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
HAK_MUST_USE HAK_INLINE long hak_syscall(
    long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
HAK_MUST_USE HAK_INLINE long hak_syscall(
    long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#    error "hakmem supports x86-64 and aarch64; add the system call of this processor here"
#endif

// Close a file. The kernel frees its number even if it returns an error (close(2)), so an error changes nothing.
HAK_INLINE void hak_syscall_close(long file)
{
    HAK_UNHEEDED(hak_syscall(SYS_close, file, 0, 0, 0, 0, 0));
}

HAK_INLINE long hak_syscall_protect(const void *start, size_t bytes, int protection)
{
    return hak_syscall(SYS_mprotect, (long)start, (long)bytes, protection, 0, 0, 0);
}

// The kernel takes addresses back from one thread before it gives them to another. ThreadSanitizer does not
// see our calls, and would take the accesses of the two threads for a race, so it is told.
#if HAK_TSAN
HAK_INTERNAL extern char hak_addresses;
#    define HAK_ADDRESSES_GO()   __tsan_release(&hak_addresses)
#    define HAK_ADDRESSES_CAME() __tsan_acquire(&hak_addresses)
#else
#    define HAK_ADDRESSES_GO()   ((void)0)
#    define HAK_ADDRESSES_CAME() ((void)0)
#endif

// Is it one of the kernel's error numbers?
HAK_INLINE bool hak_syscall_failed(long result)
{
    return result < 0 && result >= -4095;
}
