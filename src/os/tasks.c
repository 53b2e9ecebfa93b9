// tasks.c -- which threads there are, and is this one of the program's.
#include <string.h>

#include "base/atomic.h"
#include "os/os.h"

static struct {
    _Atomic(uintptr_t) start; // 0: there was none
    _Atomic(size_t) bytes;
} helper_stack;

void hak_os_note_helper(const void *stack, size_t bytes)
{
    hak_store_relaxed(&helper_stack.bytes, bytes);
    hak_store_relaxed(&helper_stack.start, (uintptr_t)stack);
}

bool hak_os_is_helper(void)
{
    const uintptr_t start = hak_load_relaxed(&helper_stack.start);
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return start != 0 && here - start < hak_load_relaxed(&helper_stack.bytes);
}

bool hak_os_has_one_task(void)
{
    char text[4096]; // the kernel's takes a third
    hak_os_read_file("/proc/self/status", text, sizeof text);
    return strstr(text, "\nThreads:\t1\n") != NULL;
}
