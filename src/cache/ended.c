// ended.c -- see ended.h.
#include "cache/ended.h"

#include "cache/sweeper.h"
#include "cache/thread.h"

enum { LOOKS = 4 };

void hak_ended_cache(struct hak_cache *cache)
{
    for (unsigned i = 0; i < HAK_COMPANIONS; i++) {
        struct hak_cache *companion = cache->companions[i];
        cache->companions[i] = NULL;
        if (companion != NULL) {
            hak_cache_end(companion);
        }
    }
    hak_store_relaxed(&cache->frees_apart, cache->is_direct);
    hak_cache_end(cache);
    hak_sweeper_thread_left();
}

// Who has ended in the middle of a call of ours, from a signal's handler, has left it locked for good.
static bool is_whole(struct hak_cache *cache)
{
    const bool is_free = hak_lock_try(&cache->lock);
    if (is_free) {
        hak_lock_drop(&cache->lock);
    }
    return is_free;
}

void hak_ended_look(void)
{
    static _Atomic(struct hak_cache *) hand; // a hint where to go on
    struct hak_cache *cache = hak_load_relaxed(&hand);
    for (unsigned i = 0; i < LOOKS; i++) {
        struct hak_cache *next = cache != NULL ? cache->next : NULL;
        // pairs with: registry_add_locked
        cache = next != NULL ? next : hak_load_acquire(&hak_registry.all);
        if (hak_life_is_over(&cache->life) && is_whole(cache)) {
            hak_ended_cache(cache);
        }
    }
    hak_store_relaxed(&hand, cache);
}
