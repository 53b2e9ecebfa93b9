// parcels.h -- empty parcels: made, kept, and given back to the pool.
//
// Owns      hak_parcels: the memory of all parcels.
// Threads   each function with the lock of the cache that it is about.
// Fails     hak_parcel_make returns NULL without memory.
//
// One thread takes an empty parcel and fills it; another opens it, and is left with it. Some threads only do the one, some
// only the other. So each cache keeps a few empty parcels, gives surplus ones to the pool by the batch, and takes a batch
// from there when it has none (docs/decisions/0031). A cache that is not in use keeps none.
#pragma once

#include "cache/cache.h"
#include "meta/pool.h"
#include "owner/inbox.h"

// How many are a batch. A cache keeps fewer than two batches, and one after it has given one, so that batches do not go back
// and forth.
enum { HAK_PARCELS_TOGETHER = 8 };

HAK_INTERNAL extern struct hak_pool_shelf hak_parcels;

// Take an empty parcel.
HAK_INTERNAL struct hak_parcel *hak_parcel_make(struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);
// How many blocks of `bytes` a parcel takes. The owner opens a parcel as a whole, and its magazine, once it has grown, has room for
// 62 blocks at most of more than 512 bytes. docs/decisions/0003.
HAK_INLINE uint32_t hak_parcel_most(uint32_t bytes)
{
    return bytes <= HAK_UNIT_BYTES / 128 ? HAK_PARCEL_BLOCKS : HAK_PARCEL_BLOCKS / 2;
}
// Put `block` of `bytes` into a parcel that has room. Only the thread whose outbox has the parcel. Step add of
// outbox.pml.
HAK_INLINE void hak_parcel_add(struct hak_parcel *parcel, void *block, uint32_t bytes)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_place_store(&parcel->blocks[count], block);
    hak_store_release(&parcel->count, count + 1); // pairs with: parcel_count
    parcel->bytes += bytes;
}
// Take back `parcel`, which is empty again, for reuse by this cache or by others.
HAK_INTERNAL void hak_parcel_end(struct hak_cache *cache, struct hak_parcel *parcel)
    HAK_REQUIRES(&cache->owner.lock);
// Give all empty parcels of the cache to the pool, because it is not in use.
HAK_INTERNAL void hak_parcels_give_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
// Do all parcels of the process together take more than a mebibyte plus a sixteenth of the heap? A hint.
HAK_INTERNAL bool hak_parcels_are_too_many(void);
