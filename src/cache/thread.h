// thread.h -- how a thread gets a cache, and how the cache ends with the thread.
//
// Threads   any.
// Fails     never: without memory for a cache hak_cache_shared serves.
#pragma once

#include "cache/cache.h"

// The calling thread's cache; if it has none yet, a dead one or a new one. &hak_cache_shared after the
// thread's cache has ended, for the first frees of a thread that begins with frees, and without memory for a
// cache. `block`: what the thread is about to free, or NULL. A thread that begins by freeing a block of a
// dead cache goes on with that cache's data, so it takes that cache.
HAK_INTERNAL struct hak_cache *hak_thread_cache(const void *block);
// Make the key whose destructor ends a thread's cache, unless it exists. Called with the first cache, or before main.
HAK_INTERNAL void hak_thread_start(void);
