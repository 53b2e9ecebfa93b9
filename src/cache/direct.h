// direct.h -- caches that keep no magazines: every call is seen, and a freed block goes to its slab.
//
// Threads   any, for its own cache, unless it says otherwise.
//
// For option check, for injected failures, and for features that check each block (hooks.h). hak_cache_shared keeps no
// magazines either.
#pragma once

#include "cache/cache.h"
#include "cache/seen.h"

// Every call must be seen: end the magazines of `cache`. The second does so if that is known since, and has not been done.
HAK_INTERNAL void hak_direct_start(struct hak_cache *cache);
HAK_INLINE void hak_direct_follow(struct hak_cache *cache)
{
    if (HAK_UNLIKELY(hak_seen_is_wanted()) && !cache->is_direct) {
        hak_direct_start(cache);
    }
}

// Free a small block. With no cache's lock.
HAK_INTERNAL void hak_direct_put(struct hak_cache *cache, void *block);
