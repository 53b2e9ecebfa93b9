// inbox.h -- how blocks get back to the owner of their slab.
//
// Layer     cache
//
// A block may be freed by any thread, but only who holds the lock of its slab's
// owner may touch the slab. So a thread gathers the blocks of another owner in a
// parcel and hands the parcel over with one atomic instruction when it is full.
// The owner empties its inbox when it next runs out of blocks; when it does not come
// to that, whoever sent too much does some of it (with the owner's lock).
//
// A thread fills HAK_OUTBOXES parcels at a time. Owners that have the same outbox share its parcel; when that is full,
// and when a parcel is handed over that is nearly empty, its blocks go straight into their slabs, those of each owner
// together (with its lock, if that is free). So parcels are few and full, and what they take of memory is bounded:
// when it is more than a sixteenth of the heap and a mebibyte, whoever sends one empties the inbox that it goes to.
//
// Blocks of a heap are never in parcels: whoever frees one waits for the heap's lock.
#ifndef HAK_CACHE_INBOX_H
#define HAK_CACHE_INBOX_H

#include <limits.h>

#include "base/options.h"
#include "cache/cache.h"
#include "cache/fast_path.h"

// Put `block` of `bytes` into a parcel that has room. The thread whose outbox it is in. Step add of
// outbox.pml.
HAK_INLINE void hak_parcel_add(struct hak_parcel *parcel, void *block, uint32_t bytes)
{
    const uint32_t count = hak_load_relaxed(&parcel->count);
    hak_place_store(&parcel->blocks[count], block);
    hak_store_release(&parcel->count, count + 1); // pairs with: parcel_count
    parcel->bytes += bytes;
}

// Is an entry that of a small block of another owner, no heap and no sample?
HAK_INLINE bool hak_inbox_is_for(const struct hak_cache *cache, uint32_t entry)
{
    const uint32_t tag = entry - HAK_MAP_CLASS(entry); // with the mark of samples
    return hak_map_is_small(entry) && (entry & HAK_MAP_SAMPLED) == 0 && tag != cache->tag &&
           !hak_tag_is_heap(tag);
}

// Free `block`, whose map entry is `entry`, into the parcel that is open for its owner: false when there
// is none, or it would be full with that, or its entry is marked: it may be a sample. `cache`: the calling
// thread's.
HAK_INLINE bool hak_inbox_add(struct hak_cache *cache, void *block, uint32_t entry)
{
    struct hak_outbox *outbox = &cache->outboxes[(entry >> 8) % HAK_OUTBOXES];
    struct hak_parcel *parcel = outbox->parcel;
    if (parcel == NULL || (outbox->tag != entry - HAK_MAP_CLASS(entry) &&
                           !(outbox->tag == HAK_OUTBOX_MIXED && hak_inbox_is_for(cache, entry)))) {
        return false;
    }
    const uint32_t bytes = hak_classes[HAK_MAP_CLASS(entry)].bytes;
    if (hak_load_relaxed(&parcel->count) == HAK_PARCEL_BLOCKS - 1 ||
        parcel->bytes + bytes >= hak_load_relaxed(&hak_options.parcel_bytes)) {
        return false;
    }
    hak_parcel_add(parcel, block, bytes);
    return true;
}

// Is a parcel of that owner's alone open?
HAK_INTERNAL bool hak_inbox_is_open(const struct hak_cache *cache, uint32_t tag);
// The same when that was not possible: `entry` has another owner's tag, no heap's. With the lock. False: no memory for a
// parcel.
HAK_INTERNAL bool hak_inbox_post(struct hak_cache *cache, void *block, uint32_t entry)
    HAK_REQUIRES(&cache->lock);
// Then: the link goes into the freed block itself, which is the one thing that we do not do otherwise, and cannot fail.
HAK_INTERNAL void hak_inbox_push_loose(void *block);
// Into its slab, whose owner's lock is waited for. No cache locked.
HAK_INTERNAL void hak_inbox_put(void *block);
// Hand over everything that waits in the outboxes, and give up all empty parcels. With the lock; the owner, or a sweep
// (`self`) for an owner that sleeps.
HAK_INTERNAL void hak_inbox_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->lock);
HAK_INTERNAL void hak_inbox_send_on(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->lock, &cache->lock);
// Does nothing wait in the cache on its way to an owner, itself or others?
HAK_INTERNAL bool hak_inbox_is_empty(const struct hak_cache *cache) HAK_REQUIRES(&cache->lock);

// Put the waiting blocks of `cache` into their slabs: those of `parcels` parcels. Both locked. False when none are left.
enum { HAK_INBOX_ALL = INT_MAX, HAK_INBOX_SOME = 8, HAK_INBOX_MANY = 64 };
HAK_INTERNAL bool hak_inbox_drain(struct hak_cache *self, struct hak_cache *cache, int parcels)
    HAK_REQUIRES(&self->lock, &cache->lock);
// The next parcel of `cache` to open, or NULL.
HAK_INTERNAL struct hak_parcel *hak_inbox_next(struct hak_cache *cache) HAK_REQUIRES(&cache->lock);
// Put `block` into its slab if `cache` owns it, else send it to its owner through `self`. Both locked.
HAK_INTERNAL void hak_inbox_route(struct hak_cache *self, struct hak_cache *cache, void *block)
    HAK_REQUIRES(&self->lock, &cache->lock);
// As above the block in places[0], or NULL, and as many as follow it in the same slab, of `count`.
// Returns how many.
HAK_INTERNAL unsigned hak_inbox_route_row(struct hak_cache *self,
                                          struct hak_cache *cache,
                                          hak_place *places,
                                          unsigned count) HAK_REQUIRES(&self->lock, &cache->lock);
#endif
