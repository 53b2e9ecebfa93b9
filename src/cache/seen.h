// seen.h -- must every call be seen? Caches keep no magazines then (direct.h).
//
// Threads   any.
#pragma once

#include "base/atomic.h"
#include "base/options.h"
#include "cache/hooks.h"

// Does a feature check each block, and how many bytes does it put behind it? Written before main.
HAK_INTERNAL extern bool hak_seen_all;
HAK_INTERNAL extern size_t hak_seen_behind_bytes;

// How many bytes the program may use of a small block of `block_bytes`.
HAK_INLINE size_t hak_seen_usable(const void *block, size_t block_bytes)
{
    return HAK_UNLIKELY(hak_seen_all) ? hak_hook_usable(block, block_bytes) : block_bytes;
}

// Do calls of malloc fail on purpose?
HAK_INLINE bool hak_seen_injects(void)
{
    return (hak_load_relaxed(&hak_options.fail_at) | hak_load_relaxed(&hak_options.fail_rate)) != 0;
}

HAK_INLINE bool hak_seen_is_wanted(void)
{
    return hak_load_relaxed(&hak_options.check) != 0 || hak_seen_injects() || hak_seen_all;
}
