// owner.h -- which cache owns the slab that an address lies in.
//
// Layer     cache
// Threads   any.
#ifndef HAK_CACHE_OWNER_H
#define HAK_CACHE_OWNER_H

#include "cache/cache.h"

// Who owns the slab that `p` lies in, now or a moment ago; NULL when it lies in none.
HAK_INTERNAL struct hak_cache *hak_owner_of(const void *p);
// The same of a block that is being freed: dies when it lies in none.
HAK_INTERNAL struct hak_cache *hak_owner_or_end(const void *block);
// Does `cache` own the slab that `p` lies in? That cannot change while its lock is held; only then may the slab be looked up and
// touched. (The map answers: it changes under the owner's lock, and says all in one word.)
HAK_INTERNAL bool hak_owner_is(const struct hak_cache *cache, const void *p)
    HAK_REQUIRES(&cache->lock);
// Lock the owner of the slab that `p` lies in and return it. NULL when it lies in none. Who calls it
// goes on with hak_lock_is_held.
HAK_INTERNAL struct hak_cache *hak_owner_lock(const void *p);

#endif
