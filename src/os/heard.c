// heard.c -- see heard.h.
#include "os/heard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "os/syscall.h"

// Written before the program's main; NULL until then.
static void *(*call_begin)(void);
static void (*call_end)(void *before);

#if defined(__x86_64__)
static bool is_plain(uintptr_t function, long number)
{
    uint64_t code; // mov $number, %eax; syscall: seven bytes
    memcpy(&code, (const void *)function, sizeof code);
    if ((uint32_t)code == 0xFA1E0FF3) { // endbr64
        memcpy(&code, (const void *)(function + 4), sizeof code);
    }
    return code << 8 == (0x050F00000000B8 | (uint64_t)number << 8) << 8;
}
_Static_assert(SYS_munmap < 256 && SYS_madvise < 256, "one byte of them");
#elif defined(__aarch64__)
static bool is_plain(uintptr_t function, long number)
{
    const uint32_t *code = (const uint32_t *)function;
    code += (code[0] & 0xFFFFF01F) == 0xD503201F; // a hint: nop, or bti c
    // mov x8, #number; svc #0
    return code[0] == (0xD2800008 | (uint32_t)number << 5) && code[1] == 0xD4000001;
}
#endif

// A library that listens to one of these calls listens to all.
bool hak_heard_has_listeners(void)
{
    return call_begin != NULL &&
           !(is_plain((uintptr_t)munmap, SYS_munmap) && is_plain((uintptr_t)madvise, SYS_madvise));
}

void hak_heard_start(void *(*begin)(void), void (*end)(void *))
{
    call_begin = begin;
    call_end = end;
}

struct call {
    void *before;
    int error;
};

static struct call begin(void)
{
    return (struct call){call_begin(), errno};
}

// The result of a function of the C library, in the kernel's form.
static long end(struct call call, long returned)
{
    const long result = returned != -1 ? returned : -errno;
    errno = call.error;
    call_end(call.before);
    return result;
}

long hak_heard_munmap(void *start, size_t bytes)
{
    if (HAK_UNLIKELY(hak_heard_has_listeners())) {
        const struct call call = begin();
        return end(call, munmap(start, bytes));
    }
    return hak_syscall(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0);
}

long hak_heard_madvise(void *start, size_t bytes, int advice)
{
    if (HAK_UNLIKELY(hak_heard_has_listeners())) {
        const struct call call = begin();
        return end(call, madvise(start, bytes, advice));
    }
    return hak_syscall(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0);
}

long hak_heard_mremap(void *start, size_t old_bytes, size_t bytes, int flags, void *target)
{
    if (HAK_UNLIKELY(hak_heard_has_listeners())) {
        const struct call call = begin();
        return end(call, (long)mremap(start, old_bytes, bytes, flags, target));
    }
    return hak_syscall(
        SYS_mremap, (long)start, (long)old_bytes, (long)bytes, flags, (long)target, 0);
}
