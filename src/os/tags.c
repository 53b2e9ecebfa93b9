// tags.c -- see tags.h.
#include "os/tags.h"

#if HAK_MTE
#    include <sys/auxv.h>
#    include <sys/mman.h>
#    include <sys/prctl.h>
#    include <sys/syscall.h>

#    include "os/syscall.h"

// Newer than the C library's headers on some systems.
#    define HWCAP2_HAS_MTE  (1UL << 18)
#    define PAGES_HAVE_TAGS 0x20 // PROT_MTE
enum { SET_TAGGED = 55, TAGGED_ADDRESSES = 1 << 0, FAULT_AT_ONCE = 1 << 1, TAGS_SHIFT = 3 };

bool hak_tags_start(void)
{
    // Any tag but 0 may be drawn, and system calls take tagged pointers.
    const long how = TAGGED_ADDRESSES | FAULT_AT_ONCE | 0xFFFE << TAGS_SHIFT;
    return (getauxval(AT_HWCAP2) & HWCAP2_HAS_MTE) != 0 &&
           hak_syscall(SYS_prctl, SET_TAGGED, how, 0, 0, 0, 0) == 0;
}

bool hak_tags_map(void *start, size_t bytes)
{
    return hak_syscall_protect(start, bytes, PROT_READ | PROT_WRITE | PAGES_HAVE_TAGS) == 0;
}
#endif
