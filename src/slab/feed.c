// feed.c -- see feed.h.
#include "slab/feed.h"

#include "meta/pool.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/runs.h"

// The largest item that fits into a unit, even between guards.
#define ITEM_MOST HAK_KIB(32)

static bool pool_has(size_t bytes)
{
    void *item = hak_pool_take(bytes);
    if (item != NULL) {
        hak_pool_give(item, bytes);
    }
    return item != NULL;
}

// Make `bytes` at each end inaccessible, for good: the program's blocks lie beside them. False: nothing has changed.
static bool guard_ends(char *unit, size_t bytes)
{
    return bytes == 0 ||
           (HAK_UNIT_BYTES >= 2 * bytes + ITEM_MOST && hak_os_guard(unit, bytes) &&
            (hak_os_guard(unit + HAK_UNIT_BYTES - bytes, bytes) || !hak_os_unguard(unit, bytes)));
}

bool hak_feed_pool(unsigned shard, unsigned units, size_t bytes)
{
    const size_t guard_bytes = hak_hook_hardens() ? hak_os_page_bytes() : 0;
    if (bytes > ITEM_MOST || !hak_arena_has_units(units + 1) || pool_has(bytes)) {
        return false;
    }
    struct hak_run *run = hak_runs_take(shard, HAK_UNIT_BYTES, 1, HAK_RUN_NONE, false);
    if (run == NULL) {
        return false;
    }
    if (!run->zeroed) {
        hak_os_clear(run->base, HAK_UNIT_BYTES);
    }
    const bool is_done = guard_ends(run->base, guard_bytes);
    if (is_done) {
        hak_pool_feed(run->base + guard_bytes, HAK_UNIT_BYTES - 2 * guard_bytes);
    } else {
        hak_runs_give(run);
    }
    return is_done;
}
