// rest.h -- a dead cache that owns nothing gives back the pages of its classes.
//
// Threads   who holds the cache's lock. hak_rest: with hak_watch.lock as well, so that who has that sees all counts once.
// Fails     never: pages that the kernel does not take stay.
//
// A cache is never unmapped. What others may touch at any time lies in its first page: lock, lists of caches, inbox. Behind
// it lies what belongs to its classes: lists of slabs, magazines, counts. Without slabs all of that may be zeros, as in a
// new cache, page by page; its next thread finds it so. Whoever reads there without the lock reads a count.
#pragma once

#include "cache/cache.h"

// Is it dead and broken up, and was one of its classes in use since it last gave back?
HAK_INTERNAL bool hak_rest_is_due(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
