// thread.h -- a thread gets a cache, and ends.
//
// Threads   any.
// Fails     never: without memory for a cache hak_cache_shared serves.
#pragma once

#include "cache/cache.h"

// The calling thread's own cache, made or taken over now if it has none yet. After the
// thread's cache has ended, for the first frees of one that begins with them, and while there is no memory for one:
// &hak_cache_shared. `block`: what the thread is about to free, or NULL. A thread that begins with
// freeing what a dead one has left goes on with that one's data, and so with its cache.
HAK_INTERNAL struct hak_cache *hak_thread_cache(const void *block);
// Make the key whose destructor ends a thread's cache, if there is none yet: with the first cache, or before main.
HAK_INTERNAL void hak_thread_start(void);
