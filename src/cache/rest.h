// rest.h -- a dead cache that owns nothing purges its own pages after the first.
//
// Threads   the holder of the cache's lock. hak_rest: and of hak_watch.lock, whose holders so see each count exactly once.
// Fails     never: pages that the kernel refuses to purge stay.
//
// A cache is never unmapped. What other threads may use at any time lies in its first page: lock, lists of caches, inbox. Behind
// it lies what belongs to its classes: lists of slabs, magazines, counts. Without slabs, each of these pages may become
// zeros, as in a new cache; the cache's next thread finds it so. Other threads read only counts there without the lock.
#pragma once

#include "cache/cache.h"

// Is the cache dead and broken up, without slabs, and was one of its classes in use since the last hak_rest?
HAK_INTERNAL bool hak_rest_is_due(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
