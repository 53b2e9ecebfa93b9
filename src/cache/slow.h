// slow.h -- the slow paths of malloc and free, in parts, so that features can do more in between (hooks.h).
//
// Threads   the calling thread's own caches, without locks.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// The calling thread's cache, made now if there is none. NULL: there can be none; hak_slow_without_cache serves the thread.
HAK_INTERNAL struct hak_cache *hak_slow_cache(void);
HAK_INTERNAL HAK_COLD void *hak_slow_without_cache(struct hak_request request);

// The slow paths of malloc and free when no feature takes part.
HAK_INTERNAL void *hak_slow_malloc(struct hak_request request, size_t size_class);
HAK_INTERNAL void hak_slow_free(void *block, struct hak_cache *cache);

// Free a block of one of the thread's caches, whose magazine for it is full or missing.
HAK_INTERNAL void hak_slow_put(struct hak_cache *cache, unsigned size_class, void *block);
// Free a block that neither BigCache nor an open parcel has taken. `entry`: its map entry, without the mark of samples.
HAK_INTERNAL void hak_slow_free_rest(void *block, uint32_t entry);
