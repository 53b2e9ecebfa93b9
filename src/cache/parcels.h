// parcels.h -- parcels in which nothing is yet, or no longer.
//
// Owns      hak_parcels: the memory of all parcels.
// Threads   each function with the lock of the cache that it is about.
// Fails     hak_parcel_make returns NULL without memory.
//
// One thread takes a parcel and fills it, another opens it and has it left over, and the one may never be the other. So
// each cache keeps a few, and what it has too many goes to the pool by the batch, from where a batch is taken by who has
// none (docs/decisions/0031). A cache that is not in use keeps none.
#pragma once

#include "cache/cache.h"
#include "meta/pool.h"
#include "owner/inbox.h"

// So many go to the pool together. A cache keeps fewer than twice as many: when it has given some, it does so again after
// as many more, and takes some after as many less.
enum { HAK_PARCELS_TOGETHER = 8 };

HAK_INTERNAL extern struct hak_pool_shelf hak_parcels;

// An empty one.
HAK_INTERNAL struct hak_parcel *hak_parcel_make(struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);
// Put `block` of `bytes` into a parcel that has room. The thread whose outbox it is in. Step add of
// outbox.pml.
HAK_INLINE void hak_parcel_add(struct hak_parcel *parcel, void *block, uint32_t bytes)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_place_store(&parcel->blocks[count], block);
    hak_store_release(&parcel->count, count + 1); // pairs with: parcel_count
    parcel->bytes += bytes;
}
// It is empty again: for the next ones that are filled here, or elsewhere.
HAK_INTERNAL void hak_parcel_end(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock);
// All of its empty ones go to the pool: the cache is not in use.
HAK_INTERNAL void hak_parcels_give_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Are all that there are, wherever they are, more than a sixteenth of what they serve? A mebibyte may always be. A hint.
HAK_INTERNAL bool hak_parcels_are_too_many(void);
