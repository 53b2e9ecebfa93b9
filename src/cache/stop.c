// stop.c -- see stop.h.
#include "cache/stop.h"

#include "cache/dying.h"
#include "cache/hooks.h"
#include "cache/magazine.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "owner/slabs.h"

// Blocks are looked at when they come back into their slabs: those in magazines now, at the latest. A cache whose lock
// is not free is left out: exit may have been called by a signal's handler in the middle of a call of ours.
static void look_at(struct hak_cache *cache, bool is_own)
{
    if (!hak_lock_try(&cache->owner.lock)) {
        return;
    }
    const bool has_no_thread = hak_load_relaxed(&cache->owner.is_whole);
    if (is_own || has_no_thread) {
        hak_remote_drain(cache, &cache->owner, HAK_REMOTE_ALL);
        hak_magazine_flush_all(cache);
    }
    if (has_no_thread) {
        hak_hook_flush(cache);
    }
    hak_lock_drop(&cache->owner.lock);
}

void hak_stop_process(void)
{
    if (hak_dying_now()) {
        return;
    }
    hak_store_relaxed(&hak_slabs_end_nothing, true);
    hak_hook_check();
    const bool has_magazines = !hak_cache_self->is_direct;
    HAK_EACH_CACHE (cache) {
        look_at(cache, has_magazines && hak_hook_is_own(cache));
    }
}
