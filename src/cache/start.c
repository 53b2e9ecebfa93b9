// start.c -- see start.h.
//
// The first allocation comes from the dynamic loader, before any constructor, before
// the environment is there and before threads can be. So the tables come up in the
// first slow path, with the default options, and the rest in a constructor.
#include "cache/start.h"

#include "base/options.h"
#include "cache/fast_path.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/thread.h"
#include "slab/arena.h"

static struct hak_lock start_lock;
static _Atomic(bool) is_started;

static bool start_tables(void)
{
    if (hak_load_acquire(&is_started)) { // pairs with: start_tables
        return true;
    }
    hak_lock_take(&start_lock);
    if (!hak_load_relaxed(&is_started) && hak_map_start()) {
        hak_arena_start();
        hak_store_release(&is_started, true); // pairs with: start_tables
    }
    hak_lock_drop(&start_lock);
    return hak_load_relaxed(&is_started);
}

struct hak_cache *hak_start_thread(void)
{
    return start_tables() ? hak_cache_for_thread() : NULL;
}

// Option check came too late for the cache that the loader used: make it direct now.
static void cache_make_direct(struct hak_cache *cache)
{
    hak_lock_take(&cache->lock);
    hak_magazine_flush_all(cache);
    hak_magazine_end_all(cache);
    hak_large_expire(cache, 0);
    for (unsigned bin = 0; bin < HAK_HOT_PLACES; bin++) {
        hak_store_relaxed(&cache->hot[bin], HAK_FULL);
    }
    cache->is_direct = true;
    hak_lock_drop(&cache->lock);
}

void hak_stop_thread(void)
{
    struct hak_cache *cache = hak_cache_self;
    if (cache != &hak_cache_nobody && !cache->is_direct) {
        hak_lock_take(&cache->lock);
        hak_inbox_drain(cache, cache);
        hak_magazine_flush_all(cache);
        hak_lock_drop(&cache->lock);
    }
}

void hak_start_process(void)
{
    hak_thread_start();
    if (hak_load_relaxed(&hak_options.check) != 0 && hak_cache_self != &hak_cache_nobody) {
        cache_make_direct(hak_cache_self);
    }
}
