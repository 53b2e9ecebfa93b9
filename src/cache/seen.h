// seen.h -- must every call be seen? Caches keep no magazines then (direct.h).
//
// Layer     cache
// Threads   any.
#ifndef HAK_CACHE_SEEN_H
#define HAK_CACHE_SEEN_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/options.h"

// A feature looks at each block. Written before main.
HAK_INTERNAL extern bool hak_seen_all;

// Do calls of malloc fail that need not?
HAK_INLINE bool hak_seen_injects(void)
{
    return (hak_load_relaxed(&hak_options.fail_at) | hak_load_relaxed(&hak_options.fail_rate)) != 0;
}

HAK_INLINE bool hak_seen_is_wanted(void)
{
    return hak_load_relaxed(&hak_options.check) != 0 || hak_seen_injects() || hak_seen_all;
}

#endif
