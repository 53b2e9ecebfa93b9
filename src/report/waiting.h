// waiting.h -- free blocks that are out of their slabs: in magazines, in parcels, loose.
//
// Layer     report
// Threads   with every lock held (hak_world_lock). Threads that run go on taking blocks out of their
//           magazines and putting some in meanwhile.
// Fails     never.
#pragma once

#include "base/compiler.h"
#include "cache/cache.h"

struct hak_cache;

// What is told of each block.
typedef void hak_waiting_sight(void *context, const void *block);

// Those on their way between threads, that lie with this cache.
HAK_INTERNAL void hak_waiting_in_parcels(struct hak_cache *cache,
                                         hak_waiting_sight *see,
                                         void *context);
// All, of all caches.
HAK_INTERNAL void hak_waiting_everywhere(hak_waiting_sight *see, void *context);
