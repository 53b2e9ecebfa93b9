// feed.c -- see feed.h.
#include "slab/feed.h"

#include "meta/pool.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/runs.h"

// A tray of the pool's: what describes a slab lies in one.
#define LEAST_BYTES HAK_KIB(16)

static bool pool_has(size_t bytes)
{
    void *item = hak_pool_take(bytes);
    if (item != NULL) {
        hak_pool_give(item, bytes);
    }
    return item != NULL;
}

bool hak_feed_pool(unsigned shard, unsigned units)
{
    if (hak_hook_hardens() || !hak_arena_has_units(units + 1) || pool_has(LEAST_BYTES)) {
        return false;
    }
    struct hak_run *run = hak_runs_take(shard, HAK_UNIT_BYTES, 1, HAK_RUN_NONE, false);
    if (run == NULL) {
        return false;
    }
    if (!run->zeroed) {
        hak_os_clear(run->base, HAK_UNIT_BYTES);
    }
    hak_pool_feed(run->base, HAK_UNIT_BYTES);
    return true;
}
