// waiting.h -- free blocks that are out of their slabs: in magazines, in parcels, loose.
//
// Threads   with all locks held (hak_world_lock). Meanwhile running threads still take blocks out of
//           their magazines and put some in.
// Fails     never.
#pragma once

#include "base/compiler.h"
#include "cache/cache.h"

struct hak_cache;

// Called with each block.
typedef void hak_waiting_sight(void *context, const void *block);

// The blocks on their way between threads that are in this cache.
HAK_INTERNAL void hak_waiting_in_parcels(struct hak_cache *cache,
                                         hak_waiting_sight *see,
                                         void *context);
// All waiting blocks of all caches.
HAK_INTERNAL void hak_waiting_everywhere(hak_waiting_sight *see, void *context);
