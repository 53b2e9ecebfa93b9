// inbox.h -- how blocks get back to the owner of their slab.
//
// Layer     cache
//
// A block may be freed by any thread, but only who holds the lock of its slab's
// owner may touch the slab. So a thread gathers the blocks of another owner in a
// parcel and hands the parcel over with one atomic instruction when it is full.
// The owner empties its inbox when it next runs out of blocks; when it does not come
// to that, whoever sent too much does some of it (with the owner's lock).
#ifndef HAK_CACHE_INBOX_H
#define HAK_CACHE_INBOX_H

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

// Free `block`, whose map entry is `entry`, into the parcel that is open for its owner: false when there
// is none, or it would be full with that, or its entry is marked: it may be a sample. `cache`: the calling
// thread's.
HAK_INLINE bool hak_inbox_add(struct hak_cache *cache, void *block, uint32_t entry)
{
    struct hak_outbox *outbox = &cache->outboxes[(entry >> 8) % HAK_OUTBOXES];
    struct hak_parcel *parcel = outbox->parcel;
    if (parcel == NULL || outbox->tag != entry - HAK_MAP_CLASS(entry)) {
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

// The same when that was not possible: `entry` has another owner's tag.
HAK_INTERNAL void hak_inbox_post(struct hak_cache *cache, void *block, uint32_t entry);
// Hand over everything that waits in the outboxes. With the lock; the owner, or a purger
// (`self`) for an owner that sleeps.
HAK_INTERNAL void hak_inbox_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->lock);
HAK_INTERNAL void hak_outbox_loot(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->lock, &cache->lock);

// Put every waiting block of `cache` into its slab. Both locked.
HAK_INTERNAL void hak_inbox_drain(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->lock, &cache->lock);
// Open parcels, blocks into the magazines, until `magazine` has `blocks` more. The owner, with the lock.
HAK_INTERNAL void hak_inbox_refill(struct hak_cache *cache, unsigned magazine, uint32_t blocks)
    HAK_REQUIRES(&cache->lock);
// Drop what waits in the inbox of `cache`, or in the outboxes of `cache` for the owner with `tag`:
// those slabs are about to end. With the lock.
HAK_INTERNAL void hak_inbox_forget(struct hak_cache *cache) HAK_REQUIRES(&cache->lock);
HAK_INTERNAL void hak_outbox_forget(struct hak_cache *cache, uint32_t tag)
    HAK_REQUIRES(&cache->lock);
// Put `block` into its slab if `cache` owns it, else send it to its owner through `self`. Both locked.
HAK_INTERNAL void hak_inbox_route(struct hak_cache *self, struct hak_cache *cache, void *block)
    HAK_REQUIRES(&self->lock, &cache->lock);
// As above the block in places[0], or NULL, and as many as follow it in the same slab, of `count`.
// Returns how many.
HAK_INTERNAL unsigned hak_inbox_route_row(struct hak_cache *self,
                                          struct hak_cache *cache,
                                          hak_place *places,
                                          unsigned count) HAK_REQUIRES(&self->lock, &cache->lock);
// Who owns the slab that `p` lies in, now or a moment ago; NULL when it lies in none.
HAK_INTERNAL struct hak_cache *hak_cache_owner_of(const void *p);
// The same of a block that is being freed: dies when it lies in none.
HAK_INTERNAL struct hak_cache *hak_cache_owner_or_end(const void *block);
// Is that `cache`? With its lock, and until that is dropped: only then may its slab be looked for and
// touched. (The map, because it changes with the owner's lock and says all in one word.)
HAK_INTERNAL bool hak_cache_owns_locked(const struct hak_cache *cache, const void *p)
    HAK_REQUIRES(&cache->lock);
// Lock the owner of the slab that `p` lies in and return it. NULL when it lies in none. Who calls it
// goes on with hak_lock_is_held.
HAK_INTERNAL struct hak_cache *hak_cache_lock_owner(const void *p);

#endif
