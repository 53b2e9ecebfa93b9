// slow.h -- what the fast paths fall back to, in pieces for those who have more to do there (hooks.h).
//
// Threads   the calling thread's own caches, without locks.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"

// The calling thread's cache, made now if it has none. NULL: it can have none, and hak_slow_without_cache serves it.
HAK_INTERNAL struct hak_cache *hak_slow_cache(void);
HAK_INTERNAL HAK_COLD void *hak_slow_without_cache(struct hak_request request);

// malloc and free of small blocks with nothing switched on.
HAK_INTERNAL void *hak_slow_malloc(struct hak_request request, size_t size_class);
HAK_INTERNAL void hak_slow_free(void *block, struct hak_cache *cache);

// Into a full magazine of one of the thread's caches.
HAK_INTERNAL void hak_slow_put(struct hak_cache *cache, unsigned size_class, void *block);
// Free what neither BigCache nor an open parcel has taken. `entry`: of the map, without the mark of samples.
HAK_INTERNAL void hak_slow_free_rest(void *block, uint32_t entry);
