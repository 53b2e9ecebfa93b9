// thread.c -- see thread.h.
#include "cache/thread.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/options.h"
#include "cache/dying.h"
#include "cache/ended.h"
#include "cache/prewarm.h"
#include "cache/registry.h"
#include "cache/sweeper.h"
#include "owner/owner.h"

static pthread_key_t thread_key;
static _Atomic(bool) thread_key_is_made; // the registry's lock; read by any

// The C library calls the destructors of a thread's keys in rounds, as long as one of them
// sets its key again, four rounds at most (POSIX's PTHREAD_DESTRUCTOR_ITERATIONS). Destructors of
// others may still allocate and free, so ours waits for the last round (under ThreadSanitizer for the second,
// because its runtime ends in the last).
#define LAST_ROUND (HAK_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS)

// The value may be another copy's cache: in a thread of another namespace (dlmopen), two C libraries that both count their keys
// from zero keep the values in one table. A copy whose value was overwritten ends its own cache all the same.
static void thread_end(void *value)
{
    struct hak_cache *cache = hak_cache_self;
    (void)value;
    if (hak_dying_now() || cache == &hak_cache_nobody || cache == &hak_cache_shared) {
        return;
    }
    // If a destructor was the first to need the cache, fewer rounds are left: the cache ends after a round
    // without an event.
    const uint64_t events = hak_load_relaxed(&cache->owner.events);
    const bool is_quiet = cache->exit_rounds > 0 && events == cache->exit_events;
    cache->exit_events = events;
    if (!is_quiet && ++cache->exit_rounds < LAST_ROUND &&
        pthread_setspecific(thread_key, cache) == 0) {
        return;
    }
    hak_cache_become(&hak_cache_shared);
    hak_life_end(&cache->life);
    hak_ended_cache(cache);
    hak_os_thread_ends();
}

// A thread whose first call is a free may be at its end: destructors of keys free in the last round, when ours is not called
// any more, and the C library frees after all of them. A cache made then would never end. So the first frees of a thread go
// without a cache, straight into slabs, as those after a cache's end do; unless the block is a dead cache's: then the
// thread follows that cache's thread, and takes the cache.
enum { FREES_WITHOUT_CACHE = 1024 };
static HAK_TLS uint32_t frees_without_cache;

static bool does_without_cache(const void *block, const struct hak_owner *owner)
{
    const bool follows = owner != NULL && hak_load_relaxed(&owner->state) == HAK_OWNER_DEAD;
    return block != NULL && !follows && frees_without_cache++ < FREES_WITHOUT_CACHE;
}

// With no lock of ours: a tool may replace the C library's function by its own, which may allocate.
void hak_thread_start(void)
{
    pthread_key_t key;
    if (hak_load_relaxed(&thread_key_is_made) || pthread_key_create(&key, thread_end) != 0) {
        return;
    }
    hak_lock_take(&hak_registry.lock);
    const bool is_second = hak_load_relaxed(&thread_key_is_made); // another thread was faster
    if (!is_second) {
        thread_key = key;
        hak_store_release(&thread_key_is_made, true); // pairs with: has_key
    }
    hak_lock_drop(&hak_registry.lock);
    if (is_second) {
        pthread_key_delete(key);
    }
}

// Makes the key if there is none: another of the process's first threads may still be about to make it.
static bool has_key(void)
{
    if (!hak_load_acquire(&thread_key_is_made)) { // pairs with: hak_thread_start
        hak_thread_start();
    }
    return hak_load_acquire(&thread_key_is_made); // pairs with: hak_thread_start
}

struct hak_cache *hak_thread_cache(const void *block)
{
    struct hak_cache *cache = hak_cache_self;
    if (cache != &hak_cache_nobody) {
        return cache;
    }
    struct hak_owner *owner = hak_owner_of(block);
    if (does_without_cache(block, owner)) {
        return &hak_cache_shared;
    }
    cache = hak_registry_get(HAK_ROLE_THREAD, owner != NULL ? hak_cache_of(owner) : NULL);
    if (cache == NULL) {
        return &hak_cache_shared; // which may have blocks; the next slow path tries again
    }
    // The cache comes first: the program may replace the C library's functions by its own, which may allocate.
    hak_cache_become(cache);
    hak_store_relaxed(&cache->thread_id, hak_os_thread_id());
    if (has_key()) {
        pthread_setspecific(thread_key, cache);
    }
    hak_life_begin(&cache->life);
    if (hak_load_relaxed(&hak_options.prewarm_tls) != 0) {
        hak_lock_take(&cache->owner.lock);
        hak_prewarm_cache(cache);
        hak_lock_drop(&cache->owner.lock);
    }
    hak_sweeper_thread_came(block == NULL);
    if (block == NULL) { // not in a free, where no thread may be started
        hak_ended_look();
    }
    hak_sweeper_wanted(0);
    return cache;
}
