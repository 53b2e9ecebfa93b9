// remote.h -- remote frees: blocks of other owners that the thread frees, and its own blocks that others have freed.
//
// A thread gathers the blocks of another owner in a parcel, and sends the parcel when it is full (owner/inbox.h).
// The owner's thread drains its inbox when it next runs out of blocks. If it does not, a sender after which
// too much waits drains some of it (with the owner's lock).
//
// A thread fills HAK_OUTBOXES parcels at a time. Owners that fall to the same outbox share its parcel. When a shared
// parcel is sent, or one that is nearly empty, its blocks go straight into their slabs, one owner after the other
// (with the owner's lock, if that is free). So parcels are few and full, and their memory is bounded: if they take
// more than a mebibyte plus a sixteenth of the heap, a sender drains the inbox that it sends to.
//
// A thread that allocates the class itself keeps most of the larger blocks in its magazine (hak_remote_keep).
//
// Blocks of a heap are never in parcels: a thread that frees one waits for the heap's lock.
#pragma once

#include <limits.h>

#include "base/options.h"
#include "cache/cache.h"
#include "cache/fast_path.h"
#include "cache/parcels.h"

// Is it the map entry of a small block of another owner that is no heap, in a slab without samples?
HAK_INLINE bool hak_remote_is_for(const struct hak_cache *cache, uint32_t entry)
{
    const uint32_t tag = entry - HAK_MAP_CLASS(entry); // with the mark of samples
    return hak_map_is_small(entry) && (entry & HAK_MAP_SAMPLED) == 0 && tag != cache->owner.tag &&
           !hak_tag_is_heap(tag);
}

// The outbox for blocks of an owner. If the outbox has the owner's tag, its parcel is for that owner only.
HAK_INLINE struct hak_outbox *hak_remote_outbox(struct hak_cache *cache, uint32_t entry)
{
    return &cache->outboxes[(entry >> 8) % HAK_OUTBOXES];
}

// The smallest class whose blocks stay. Smaller neighbours in use by two threads would cause false sharing: a processor fetches
// two lines of 64 bytes together (Intel's optimization manual, "spatial prefetcher"). Up to 128 bytes, classes are 16 bytes apart.
#define HAK_KEEP_FIRST (2 * HAK_CACHE_LINE / 16 - 1)
// One in so many goes to its owner, so that kept blocks return in time, and slabs of dead owners are reclaimed.
enum { HAK_KEEP_TURNS = 16 };

// Keep `block`, another thread's, in this thread's magazine, to be allocated next. False: the magazine is full, or there is none,
// as in a thread that only frees. A flush of the magazine sends the block to its owner. docs/decisions/0057.
HAK_INLINE bool hak_remote_keep(struct hak_cache *cache, void *block, uint32_t entry)
{
    const uint32_t size_class = HAK_MAP_CLASS(entry);
    if (size_class - HAK_KEEP_FIRST >= HAK_SMALL_CLASSES - HAK_KEEP_FIRST) {
        return false;
    }
    _Atomic(hak_place *) *at = &cache->top[hak_cache_top_number(cache, size_class)];
    hak_place *top = hak_peek(at);
    if (hak_place_is_end(top) || !hak_tag_is_threads(entry) ||
        HAK_MAP_TAG(entry) == cache->owner.tag ||
        ++hak_remote_outbox(cache, entry)->kept % HAK_KEEP_TURNS == 0) {
        return false;
    }
    hak_cache_push_at(at, top, block);
    return true;
}

// Free `block`, whose map entry is `entry`, into the parcel that is open for its owner. False: there is none, the
// block would fill it, or the entry is marked, as the block may be a sample. `cache`: the calling
// thread's.
HAK_INLINE bool hak_remote_add(struct hak_cache *cache, void *block, uint32_t entry)
{
    struct hak_outbox *outbox = hak_remote_outbox(cache, entry);
    struct hak_parcel *parcel = outbox->parcel;
    if (parcel == NULL || (outbox->tag != entry - HAK_MAP_CLASS(entry) &&
                           !(outbox->tag == HAK_OUTBOX_MIXED && hak_remote_is_for(cache, entry)))) {
        return false;
    }
    const uint32_t bytes = hak_classes[HAK_MAP_CLASS(entry)].bytes;
    if (hak_load_relaxed(&parcel->count) >= hak_parcel_most(bytes) - 1 ||
        parcel->bytes + bytes >= hak_load_relaxed(&hak_options.parcel_bytes)) {
        return false;
    }
    hak_parcel_add(parcel, block, bytes);
    return true;
}

// The same if hak_remote_add has failed: opens a parcel, or sends one that is full. `entry` has another owner's tag, no heap's.
// With the lock. False: no memory for a parcel.
HAK_INTERNAL bool hak_remote_post(struct hak_cache *cache, void *block, uint32_t entry)
    HAK_REQUIRES(&cache->owner.lock);
// Send everything that waits in the outboxes, and give all empty parcels to the pool. With the lock. The second is for a sweep
// (`self`), of a cache whose thread sleeps.
HAK_INTERNAL void hak_remote_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_remote_send_on(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock);
// Does nothing wait in the outboxes?
HAK_INTERNAL bool hak_remote_is_empty(const struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);

// Put the blocks of the owner's next `parcels` parcels, and its loose blocks, into their slabs. `self` sends on blocks that are not
// the owner's any more. Both locked. False: no parcels are left.
enum { HAK_REMOTE_ALL = INT_MAX, HAK_REMOTE_SOME = 8, HAK_REMOTE_MANY = 64 };
HAK_INTERNAL bool hak_remote_drain(struct hak_cache *self, struct hak_owner *owner, int parcels)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
// Put `block` into its slab if `owner` or `self` owns it; if not, send it to its owner from an outbox of `self`. Both locked.
HAK_INTERNAL void hak_remote_route(struct hak_cache *self, struct hak_owner *owner, void *block)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
// The same with the block in places[0], or NULL, and with those of the `count` places that follow it in the same
// slab. Returns how many places it is done with.
HAK_INTERNAL unsigned hak_remote_route_row(struct hak_cache *self,
                                           struct hak_owner *owner,
                                           hak_place *places,
                                           unsigned count)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
