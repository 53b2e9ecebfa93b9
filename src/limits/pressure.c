// pressure.c -- see pressure.h.
#include "limits/pressure.h"

#include <string.h>

#include "base/atomic.h"
#include "base/number.h"
#include "cache/hooks.h"
#include "limits/room.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/hooks.h"

enum { REARM_PARTS = 32, TEXT_BYTES = 4096 };

struct hak_pressure hak_pressure;

static char text[TEXT_BYTES];

void hak_pressure_start(void)
{
    const struct hak_share share = hak_control_group_read_share();
    hak_pressure.files = hak_control_group_hold_files();
    hak_pressure.limit_bytes = hak_pressure.files.use.file >= 0 ? share.memory_bytes : 0;
    hak_pressure.is_watched = true;
}

// Inactive file pages, which the kernel reclaims before it kills a process.
static size_t inactive_file_bytes(void)
{
    hak_os_read_held(&hak_pressure.files.statistics, text, sizeof text);
    const bool is_version_1 = hak_pressure.files.is_version_1;
    return hak_number_behind(text, is_version_1 ? "\ntotal_inactive_file " : "\ninactive_file ", 0);
}

bool hak_pressure_is_near(size_t bytes)
{
    const size_t limit = hak_pressure.limit_bytes;
    if (limit == 0 || hak_os_read_held(&hak_pressure.files.use, text, sizeof text) == 0) {
        return false;
    }
    const size_t near = limit - limit / HAK_NEAR_PARTS;
    size_t used = hak_number_behind(text, "", 0);
    if (used + bytes >= near) {
        const size_t droppable = inactive_file_bytes();
        used -= droppable < used ? droppable : used;
    }
    hak_pressure.used_bytes = used;
    return used + bytes >= near;
}

// False if the use would come near the limit, until all was given back; then again for each further 32nd part of the limit.
bool hak_hook_may_map_locked(size_t bytes)
{
    if (!hak_pressure.is_watched || !hak_pressure_is_near(bytes)) {
        hak_pressure.relieved_bytes = 0;
        return true;
    }
    const size_t relieved = hak_pressure.relieved_bytes;
    const bool is_allowed = relieved != 0 && hak_pressure.used_bytes <
                                                 relieved + hak_pressure.limit_bytes / REARM_PARTS;
    hak_store_relaxed(&hak_pressure.is_refused, !is_allowed);
    return is_allowed;
}

void hak_hook_swept_everything(void)
{
    hak_room_note_sweep();
    if (hak_pressure.is_watched) {
        hak_lock_take(&hak_arena.lock);
        hak_pressure_is_near(0);
        hak_pressure.relieved_bytes = hak_pressure.used_bytes + 1;
        hak_store_relaxed(&hak_pressure.is_refused, false);
        hak_lock_drop(&hak_arena.lock);
    }
}

struct hak_stalls hak_pressure_stalls(void)
{
    struct hak_stalls stalls = {0, 0};
    if (hak_os_read_held(&hak_pressure.files.stalls, text, sizeof text) > 0 &&
        strncmp(text, "some ", 5) == 0) {
        stalls.some_us = hak_number_behind(text, "total=", 0);
        const char *full = strstr(text, "full ");
        stalls.full_us = full != NULL ? hak_number_behind(full, "total=", 0) : 0;
    }
    return stalls;
}
