// direct.h -- caches that keep no magazines: every call is seen, and a freed block goes to its slab.
//
// Threads   any, for its own cache, unless it says otherwise.
//
// For option check and the injector, and for what hardens the heap by looking at each block (hooks.h). hak_cache_shared
// keeps none either.
#pragma once

#include "cache/cache.h"
#include "cache/seen.h"

// That every call must be seen is known now: do without magazines from now on.
HAK_INTERNAL void hak_direct_start(struct hak_cache *cache);
HAK_INLINE void hak_direct_follow(struct hak_cache *cache)
{
    if (HAK_UNLIKELY(hak_seen_is_wanted()) && !cache->is_direct) {
        hak_direct_start(cache);
    }
}

// Free a small block. No cache locked.
HAK_INTERNAL void hak_direct_put(struct hak_cache *cache, void *block);
