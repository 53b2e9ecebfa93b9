// heard.c -- see heard.h.
#include "os/heard.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "os/os.h"
#include "os/syscall.h"

static bool is_started; // written before the program's main

#if defined(__x86_64__)
static bool is_plain(uintptr_t function, long number)
{
    static const unsigned char landing[] = {0xF3, 0x0F, 0x1E, 0xFA}; // endbr64
    const unsigned char *code = (const unsigned char *)function;
    code += memcmp(code, landing, sizeof landing) == 0 ? sizeof landing : 0;
    // mov $number, %eax; syscall
    const unsigned char call[] = {0xB8, (unsigned char)number, 0, 0, 0, 0x0F, 0x05};
    return memcmp(code, call, sizeof call) == 0;
}
_Static_assert(SYS_munmap < 256 && SYS_madvise < 256 && SYS_mprotect < 256, "one byte of them");
#elif defined(__aarch64__)
static bool is_plain(uintptr_t function, long number)
{
    const uint32_t *code = (const uint32_t *)function;
    code += (code[0] & 0xFFFFF01F) == 0xD503201F; // a hint: nop, or bti c
    // mov x8, #number; svc #0
    return code[0] == (0xD2800008 | (uint32_t)number << 5) && code[1] == 0xD4000001;
}
#endif

// Whoever hears of one of them hears of all.
bool hak_heard_has_listeners(void)
{
    return is_started &&
           !(is_plain((uintptr_t)munmap, SYS_munmap) && is_plain((uintptr_t)madvise, SYS_madvise));
}

void hak_heard_start(void)
{
    is_started = true;
}

// A C library whose functions do not begin in this way would seem to be listened to by somebody.
static bool is_known_library(void)
{
    return is_plain((uintptr_t)mprotect, SYS_mprotect);
}

enum way { BY_ITSELF, BY_THE_LIBRARY, NOT_HERE };

static enum way way_now(void)
{
    if (HAK_LIKELY(!hak_heard_has_listeners())) {
        return BY_ITSELF;
    }
    if (!hak_thread_is_ours()) {
        return BY_THE_LIBRARY;
    }
    return is_known_library() ? NOT_HERE : BY_ITSELF;
}

// What a function of the C library returned, as the kernel says it.
static long result_of(long returned, int errno_before)
{
    const long result = returned != -1 ? returned : -errno;
    errno = errno_before;
    return result;
}

long hak_heard_munmap(void *start, size_t bytes)
{
    const enum way way = way_now();
    if (way == BY_THE_LIBRARY) {
        const int before = errno;
        return result_of(munmap(start, bytes), before);
    }
    return way == BY_ITSELF ? hak_syscall(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0)
                            : -EPERM;
}

long hak_heard_madvise(void *start, size_t bytes, int advice)
{
    const enum way way = way_now();
    if (way == BY_THE_LIBRARY) {
        const int before = errno;
        return result_of(madvise(start, bytes, advice), before);
    }
    return way == BY_ITSELF ? hak_syscall(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0)
                            : -EPERM;
}

long hak_heard_mremap(void *start, size_t old_bytes, size_t bytes, int flags, void *target)
{
    if (way_now() == BY_THE_LIBRARY) {
        const int before = errno;
        return result_of((long)mremap(start, old_bytes, bytes, flags, target), before);
    }
    return hak_syscall(
        SYS_mremap, (long)start, (long)old_bytes, (long)bytes, flags, (long)target, 0);
}
