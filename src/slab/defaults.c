// defaults.c -- see defaults.h and docs/decisions/0010.
#include "slab/defaults.h"

#include "base/bits.h"
#include "os/control_group.h"
#include "os/os.h"
#include "slab/hooks.h"

// Free memory that waits for its purge, and the magazines of all running threads, may each take a sixteenth of the
// memory. As much again may wait after a peak, unless a control group limits the memory: beyond such a limit the
// kernel kills a process, and the group's other processes have peaks, too.
enum { PART_OF_MEMORY = 16 };
#define DIRTY_LEAST    HAK_MIB(1)
#define MAGAZINE_LEAST HAK_KIB(64)
// With less memory than 128 huge pages, a huge page of which the program touches only one place is too expensive.
#define HUGE_MEMORY_LEAST HAK_MIB(256)

static void fit_down(_Atomic(uint64_t) *option, uint64_t value, uint64_t least)
{
    value = value > least ? value : least;
    if (value < hak_load_relaxed(option)) {
        hak_option_choose(option, value, HAK_FROM_MACHINE);
    }
}

void hak_defaults_fit(void)
{
    hak_lock_take(&hak_arena.lock);
    hak_store_relaxed(&hak_arena.grants_huge, hak_os_grants_huge());
    hak_defaults_fit_locked();
    hak_lock_drop(&hak_arena.lock);
}

void hak_defaults_fit_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    static bool is_done;
    if (is_done || hak_load_relaxed(&hak_options.deterministic) != 0) {
        return;
    }
    is_done = true;
    const struct hak_share share = hak_control_group_read_share();
    const uint64_t part = share.memory_bytes / PART_OF_MEMORY;
    hak_store_relaxed(&hak_arena.part_bytes, part);
    if (share.memory_used == 0) { // no control group limits the memory
        hak_store_relaxed(&hak_arena.peak_most, part);
    }
    hak_hook_share_locked(&share);
    fit_down(&hak_options.dirty_bytes, part, DIRTY_LEAST);
    // A control group may grant fewer processors; then each may hold more. If the value fits all processors, no file is read.
    if (part / hak_os_processors() < hak_load_relaxed(&hak_options.magazine_bytes)) {
        fit_down(&hak_options.magazine_bytes,
                 part / hak_control_group_read_processors(),
                 MAGAZINE_LEAST);
    }
    if (share.memory_bytes < HUGE_MEMORY_LEAST) {
        hak_option_choose(&hak_options.huge_start_bytes, HAK_GIB(1024), HAK_FROM_MACHINE); // never
    }
}

bool hak_defaults_choose(_Atomic(uint64_t) *option, uint64_t value, enum hak_option_source source)
{
    hak_lock_take(&hak_arena.lock);
    const bool is_chosen = hak_option_choose(option, value, source);
    hak_lock_drop(&hak_arena.lock);
    return is_chosen;
}
