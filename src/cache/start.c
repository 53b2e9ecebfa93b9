// start.c -- see start.h.
//
// The first allocation may come from the dynamic loader, before any constructor has run and before the
// environment can be read. So the first slow path starts everything, with the default options; a constructor
// reads the options of the environment. By then the program may have threads already, if another
// constructor ran before ours.
#include "cache/start.h"

#include "cache/bigcache.h"
#include "cache/direct.h"
#include "cache/dying.h"
#include "cache/fork.h"
#include "cache/hooks.h"
#include "cache/nested.h"
#include "cache/registry.h"
#include "cache/seen.h"
#include "cache/thread.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/defaults.h"

// Steps look and make of start.pml.
static bool start_tables(void)
{
    if (hak_arena_is_started()) {
        return true;
    }
    hak_lock_take(&hak_registry.lock);
    // An earlier try may have started the map, and then have run out of memory.
    const bool is_first = !hak_arena_is_started() && (hak_map.window != NULL || hak_map_start());
    if (is_first) {
        hak_arena_start();
    }
    hak_lock_drop(&hak_registry.lock);
    if (is_first) {
        hak_thread_start();
        hak_fork_start();
    }
    return hak_arena_is_started();
}

struct hak_cache *hak_start_thread(const void *block)
{
    const bool may = !hak_dying_now() && !hak_is_nested;
    return may && start_tables() ? hak_thread_cache(block) : NULL;
}

// Every call must be seen: let the heaps follow that were made before this was known, those that have ended, too, as they may come
// back. A thread's cache follows by itself (direct.h).
static void start_heaps(void)
{
    hak_lock_take(&hak_registry.lock);
    HAK_EACH_CACHE (cache) {
        if (cache->owner.role == HAK_ROLE_HEAP) {
            hak_direct_follow(cache);
        }
    }
    hak_lock_drop(&hak_registry.lock);
}

void hak_start_process(void)
{
    if (hak_os_start()) {
        hak_defaults_fit();
    }
    hak_thread_start(); // now, because the program may use up all keys before it allocates
    hak_fork_start();
    hak_hook_start();
    start_heaps();
    struct hak_cache *cache = hak_cache_self;
    if (cache == &hak_cache_nobody) {
        return; // nothing was allocated before the options were known
    }
    if (hak_load_relaxed(&hak_options.deterministic) != 0) {
        static const char line[] =
            "hakmem: HAKMEM_DETERMINISTIC has no effect: memory was allocated "
            "before the environment could be read\n";
        hak_os_print(line, sizeof line - 1);
    }
    if (hak_seen_is_wanted()) {
        hak_direct_start(cache);
    } else if (hak_load_relaxed(&hak_options.bigcache) == 0) {
        hak_lock_take(&cache->owner.lock);
        hak_bigcache_keep_nothing(cache);
        hak_lock_drop(&cache->owner.lock);
    }
}
