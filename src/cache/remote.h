// remote.h -- blocks of other owners that the thread frees, and what others have freed of one's own.
//
//
// A thread gathers the blocks of another owner in a parcel, and hands the parcel over when it is full (owner/inbox.h).
// The owner's thread empties its inbox when it next runs out of blocks; when it does not come
// to that, whoever sent too much does some of it (with the owner's lock).
//
// A thread fills HAK_OUTBOXES parcels at a time. Owners that have the same outbox share its parcel; when that is full,
// and when a parcel is handed over that is nearly empty, its blocks go straight into their slabs, those of each owner
// together (with its lock, if that is free). So parcels are few and full, and what they take of memory is bounded:
// when it is more than a sixteenth of the heap and a mebibyte, whoever sends one empties the inbox that it goes to.
//
// A thread that allocates the class itself keeps most of the larger blocks in its magazine (hak_remote_keep).
//
// Blocks of a heap are never in parcels: whoever frees one waits for the heap's lock.
#pragma once

#include <limits.h>

#include "base/options.h"
#include "cache/cache.h"
#include "cache/fast_path.h"
#include "cache/parcels.h"

// Is an entry that of a small block of another owner, no heap and no sample?
HAK_INLINE bool hak_remote_is_for(const struct hak_cache *cache, uint32_t entry)
{
    const uint32_t tag = entry - HAK_MAP_CLASS(entry); // with the mark of samples
    return hak_map_is_small(entry) && (entry & HAK_MAP_SAMPLED) == 0 && tag != cache->owner.tag &&
           !hak_tag_is_heap(tag);
}

// The outbox for blocks of an owner; a parcel of his alone is open if it has his tag.
HAK_INLINE struct hak_outbox *hak_remote_outbox(struct hak_cache *cache, uint32_t entry)
{
    return &cache->outboxes[(entry >> 8) % HAK_OUTBOXES];
}

// The first class of which blocks stay. Two threads with neighbours of smaller ones would use what a processor fetches together:
// two lines of 64 bytes (Intel's optimization manual, "spatial prefetcher"). Up to 128 bytes classes go by 16.
#define HAK_KEEP_FIRST (2 * HAK_CACHE_LINE / 16 - 1)
// One in so many goes to its owner: so what has crossed once is back in time, and slabs of dead owners are taken over.
enum { HAK_KEEP_TURNS = 16 };

// Keep `block`, which is another thread's, for what this one allocates next: false when its magazine is full, or it has none, as a
// thread that only frees. Whoever flushes the magazine sends it to its owner. docs/decisions/0057.
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

// Free `block`, whose map entry is `entry`, into the parcel that is open for its owner: false when there
// is none, or it would be full with that, or its entry is marked: it may be a sample. `cache`: the calling
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
    if (hak_load_relaxed(&parcel->count) == HAK_PARCEL_BLOCKS - 1 ||
        parcel->bytes + bytes >= hak_load_relaxed(&hak_options.parcel_bytes)) {
        return false;
    }
    hak_parcel_add(parcel, block, bytes);
    return true;
}

// The same when that was not possible: `entry` has another owner's tag, no heap's. With the lock. False: no memory for a
// parcel.
HAK_INTERNAL bool hak_remote_post(struct hak_cache *cache, void *block, uint32_t entry)
    HAK_REQUIRES(&cache->owner.lock);
// Hand over everything that waits in the outboxes, and give up all empty parcels. With the lock; the thread, or a sweep
// (`self`) for a thread that sleeps.
HAK_INTERNAL void hak_remote_post_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);
HAK_INTERNAL void hak_remote_send_on(struct hak_cache *self, struct hak_cache *cache)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock);
// Does nothing wait in the outboxes?
HAK_INTERNAL bool hak_remote_is_empty(const struct hak_cache *cache)
    HAK_REQUIRES(&cache->owner.lock);

// Put the waiting blocks of `owner` into their slabs: those of `parcels` parcels. `self` sends on what is not the owner's any more.
// Both locked. False when none are left.
enum { HAK_REMOTE_ALL = INT_MAX, HAK_REMOTE_SOME = 8, HAK_REMOTE_MANY = 64 };
HAK_INTERNAL bool hak_remote_drain(struct hak_cache *self, struct hak_owner *owner, int parcels)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
// Put `block` into its slab if `owner` owns it, else send it to its owner through `self`. Both locked.
HAK_INTERNAL void hak_remote_route(struct hak_cache *self, struct hak_owner *owner, void *block)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
// As above the block in places[0], or NULL, and as many as follow it in the same slab, of `count`.
// Returns how many.
HAK_INTERNAL unsigned hak_remote_route_row(struct hak_cache *self,
                                           struct hak_owner *owner,
                                           hak_place *places,
                                           unsigned count)
    HAK_REQUIRES(&self->owner.lock, &owner->lock);
