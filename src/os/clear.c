// clear.c -- hak_os_clear on Linux: which pages of a range are there at all?
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/os.h"
#include "os/syscall.h"

// Of linux/fs.h since 6.7 (Documentation/admin-guide/mm/pagemap.rst, "Pagemap Scan IOCTL"), newer than the
// kernel's headers on many systems.
struct scan {
    uint64_t size; // of this
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end; // result: how far it came
    uint64_t regions;  // address
    uint64_t regions_most;
    uint64_t pages_most; // 0: all
    uint64_t inverted;   // categories that are meant when they are missing
    uint64_t all_of;
    uint64_t any_of;
    uint64_t told; // categories by which pages are told apart
};

struct region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};

enum { PAGE_IS_PRESENT = 1 << 3, PAGE_IS_SWAPPED = 1 << 4, PAGE_IS_ZERO = 1 << 5 };

// _IOWR('f', 16, struct pm_scan_arg)
#define PAGEMAP_SCAN 0xC0606610
_Static_assert(sizeof(struct scan) == (PAGEMAP_SCAN >> 16 & 0x3FFF), "what the kernel expects");

// Clear the pages from `from` to `end` that are there, other than the kernel's page of zeros. Returns
// how far it came: `end`, or less where the kernel (or an emulator) does not know the call.
static char *clear_scanned(long file, char *from, char *end)
{
    struct region regions[128] = {{0}};
    struct scan scan = {
        .size = sizeof scan,
        .start = (uintptr_t)from,
        .end = (uintptr_t)end,
        .regions = (uintptr_t)regions,
        .regions_most = sizeof regions / sizeof regions[0],
        .inverted = PAGE_IS_ZERO,
        .all_of = PAGE_IS_ZERO,
        .any_of = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
    };
    while (scan.start < (uintptr_t)end) {
        const long count = hak_syscall(SYS_ioctl, file, PAGEMAP_SCAN, (long)&scan, 0, 0, 0);
        if (hak_call_failed(count) || scan.walk_end <= scan.start) {
            break;
        }
        for (long i = 0; i < count; i++) {
            char *start = (char *)regions[i].start;
            char *after = (char *)regions[i].end < end ? (char *)regions[i].end : end;
            memset(start, 0, (size_t)(after - start));
        }
        scan.start = scan.walk_end;
    }
    return (char *)scan.start < end ? (char *)scan.start : end;
}

// The words of /proc/self/pagemap of `pages` pages from the one that `address` lies in. False when they cannot be read.
static bool read_pagemap(long file, const void *address, size_t pages, uint64_t *entries)
{
    const long wanted = (long)(pages * sizeof *entries);
    const long offset = (long)((uintptr_t)address / hak_os_page_bytes() * sizeof *entries);
    return hak_syscall(SYS_pread64, file, (long)entries, wanted, offset, 0, 0) == wanted;
}

// Clear the pages of one stretch that `entries` say are there: bit 63 present, bit 62 swapped out
// (Documentation/admin-guide/mm/pagemap.rst).
static void clear_present(char *start, size_t bytes, const uint64_t *entries)
{
    const size_t page = hak_os_page_bytes();
    for (size_t done = 0; done < bytes; done += page) {
        const size_t part = bytes - done < page ? bytes - done : page;
        if ((entries[done / page] >> 62) != 0) {
            memset(start + done, 0, part);
        }
    }
}

// The same by the words of pagemap, which every kernel has. Where these tell nothing all is cleared.
static void clear_read(long file, char *from, char *end)
{
    uint64_t entries[256]; // 1 MiB at a time with pages of 4 KiB
    const size_t page = hak_os_page_bytes();
    const size_t stretch = sizeof entries / sizeof entries[0] * page;
    // An emulator shows its own pages there, which may be of another size: what was just written has
    // to be present.
    entries[0] = 0;
    const bool is_ours = read_pagemap(file, entries, 1, entries) && (entries[0] >> 62) != 0;
    for (; from < end; from += stretch) {
        const size_t rest = (size_t)(end - from);
        const size_t part = rest < stretch ? rest : stretch;
        if (is_ours && read_pagemap(file, from, (part + page - 1) / page, entries)) {
            clear_present(from, part, entries);
        } else {
            memset(from, 0, part);
        }
    }
}

void hak_os_clear(void *start, size_t bytes)
{
    char *end = (char *)start + bytes;
    const long file = hak_syscall(
        SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (hak_call_failed(file)) {
        memset(start, 0, bytes);
        return;
    }
    char *from = clear_scanned(file, start, end);
    if (from < end) {
        clear_read(file, from, end);
    }
    hak_syscall(SYS_close, file, 0, 0, 0, 0, 0);
}
