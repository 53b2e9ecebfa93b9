// names.c -- see names.h.
#include "os/names.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/options.h"
#include "os/kernel.h"
#include "os/syscall.h"

// What the dynamic linker's allocations take is one superslab, descriptors and the map.
enum { EARLY_MAX = 16 };
enum { UNDECIDED, WANTED, UNWANTED };

static _Atomic(unsigned) state;
// Whoever finds half of one here takes it for an empty range, which has no name.
static struct {
    _Atomic(uintptr_t) start;
    _Atomic(size_t) bytes;
} early[EARLY_MAX];
static _Atomic(unsigned) early_count;

static void name(uintptr_t start, size_t bytes)
{
    static const char text[] = "hakmem";
    const long got = hak_syscall(
        SYS_prctl, HAK_PRCTL_VMA, HAK_PRCTL_VMA_NAME, (long)start, (long)bytes, (long)text, 0);
    // A kernel without CONFIG_ANON_VMA_NAME, or a sandbox. ENOMEM passes.
    if (got == -EINVAL || got == -EPERM || got == -ENOSYS) {
        hak_store_relaxed(&state, UNWANTED);
    }
}

void hak_names_mapped(void *start, size_t bytes)
{
    const unsigned now = hak_load_relaxed(&state);
    if (now == WANTED) {
        name((uintptr_t)start, bytes);
    } else if (now == UNDECIDED) {
        const unsigned place = hak_add_relaxed(&early_count, 1);
        if (place < EARLY_MAX) {
            hak_store_relaxed(&early[place].bytes, bytes);
            hak_store_relaxed(&early[place].start, (uintptr_t)start);
        }
    }
}

void hak_names_start(void)
{
    const bool is_wanted = hak_load_relaxed(&hak_options.name_mappings) != 0;
    hak_store_relaxed(&state, is_wanted ? WANTED : UNWANTED);
    for (unsigned i = 0; i < EARLY_MAX && hak_load_relaxed(&state) == WANTED; i++) {
        const size_t bytes = hak_load_relaxed(&early[i].bytes);
        const uintptr_t start = hak_load_relaxed(&early[i].start);
        if (start != 0 && bytes != 0) {
            name(start, bytes);
        }
    }
}
