// guards.c -- inaccessible pages, as os.h has them, on Linux.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

// Newer than the C library's headers on most systems: Linux 6.13.
#ifndef MADV_GUARD_INSTALL
#    define MADV_GUARD_INSTALL 102
#    define MADV_GUARD_REMOVE  103
#endif

// Does the kernel know guard regions? They are marks in the page tables, and take no mappings.
enum { UNKNOWN, KNOWN, MISSING };
static _Atomic(unsigned) regions;
// Some guards are made with mprotect all the same: the kernel refuses guard regions in locked memory.
static _Atomic(bool) is_mixed;

static bool advise(void *start, size_t bytes, int advice)
{
    return hak_syscall(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0) == 0;
}

// An emulator may report success for advice that it does not know, so the first guard is checked. A thread that has made a guard
// stores KNOWN, so that it can be removed, even if another thread was refused at the same time.
static bool install(void *start, size_t bytes)
{
    const unsigned before = hak_load_relaxed(&regions);
    if (before == MISSING) {
        return false;
    }
    const bool done =
        advise(start, bytes, MADV_GUARD_INSTALL) && (before == KNOWN || !hak_os_can_read(start));
    unsigned unknown = UNKNOWN;
    if (done) {
        hak_store_relaxed(&regions, KNOWN);
    } else {
        hak_cas_relaxed(&regions, &unknown, MISSING);
    }
    return done;
}

bool hak_os_guard(void *start, size_t bytes)
{
    if (install(start, bytes)) {
        return true;
    }
    hak_store_relaxed(&is_mixed, true);
    return hak_syscall_protect(start, bytes, PROT_NONE) == 0;
}

bool hak_os_unguard(void *start, size_t bytes)
{
    if (hak_load_relaxed(&regions) == KNOWN && !advise(start, bytes, MADV_GUARD_REMOVE)) {
        return false;
    }
    return !hak_load_relaxed(&is_mixed) ||
           hak_syscall_protect(start, bytes, PROT_READ | PROT_WRITE) == 0;
}

unsigned hak_os_guard_mappings(void)
{
    return hak_load_relaxed(&is_mixed) ? 2 : 0;
}

// With mprotect: there are few of these, every process has them, and /proc/PID/maps shows them.
void *hak_os_map_guarded(size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    char *start = hak_os_map(bytes + 2 * page);
    if (start == NULL) {
        return NULL;
    }
    hak_os_want_huge(start, bytes + 2 * page, false); // little of it may ever be touched
    // Without guards it is memory like any other.
    HAK_UNHEEDED(hak_syscall_protect(start, page, PROT_NONE));
    HAK_UNHEEDED(hak_syscall_protect(start + page + bytes, page, PROT_NONE));
    return start + page;
}
