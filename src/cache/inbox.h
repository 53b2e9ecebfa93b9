// inbox.h -- how blocks get back to the owner of their slab.
//
// Layer     cache
//
// A block may be freed by any thread, but only who holds the lock of its slab's
// owner may touch the slab. So a thread gathers the blocks of another owner in a
// parcel and hands the parcel over with one atomic instruction when it is full.
// The owner empties its inbox when it next runs out of blocks; when it does not come
// to that, whoever sent too much does it (hak_inbox_drain with the owner's lock).
#ifndef HAK_CACHE_INBOX_H
#define HAK_CACHE_INBOX_H

#include "cache/cache.h"

// Free `block`, whose map entry is `entry` with another owner's tag. `cache`: the calling thread's.
HAK_INTERNAL void hak_inbox_post(struct hak_cache *cache, void *block, uint32_t entry);
// Hand over everything that waits in the outboxes. With the lock; the owner, or a purger
// (`self`) for an owner that sleeps.
HAK_INTERNAL void hak_inbox_post_all(struct hak_cache *cache);
HAK_INTERNAL void hak_outbox_loot(struct hak_cache *self, struct hak_cache *cache);

// Put every waiting block of `cache` into its slab. Both locked.
HAK_INTERNAL void hak_inbox_drain(struct hak_cache *self, struct hak_cache *cache);
// Open parcels, blocks into the magazines, until that of `size_class` holds `blocks`. The owner,
// with the lock.
HAK_INTERNAL void hak_inbox_refill(struct hak_cache *cache, unsigned size_class, uint32_t blocks);
// Drop what waits in the inbox of `cache`, or in the outboxes of `cache` for the owner with `tag`:
// those slabs are about to end. With the lock.
HAK_INTERNAL void hak_inbox_forget(struct hak_cache *cache);
HAK_INTERNAL void hak_outbox_forget(struct hak_cache *cache, uint32_t tag);
// Put `block` into its slab if `cache` owns it, else send it to its owner through `self`. Both locked.
HAK_INTERNAL void hak_inbox_route(struct hak_cache *self, struct hak_cache *cache, void *block);
// Lock the owner of a slab and return it: until it is unlocked the slab cannot end. NULL when it has.
HAK_INTERNAL struct hak_cache *hak_cache_lock_owner(const struct hak_slab *slab);
// Put a block straight into its slab, whoever owns it. No cache locked.
HAK_INTERNAL void hak_inbox_put_direct(void *block);

#endif
