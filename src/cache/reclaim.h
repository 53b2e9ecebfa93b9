// reclaim.h -- reclaiming the slabs of dead caches, and slabs that other caches can spare.
//
// Threads   any.
//
// The cache of a thread that ends is dead. It stays whole, with its blocks and slabs, for the next thread that
// starts. Meanwhile, a thread that frees a block of a dead cache reclaims the block's slab, if it allocates
// that class itself: mostly it goes on with a predecessor's data, and then frees the slab's other blocks
// without parcels. (A thread that only frees must not own slabs.)
//
// A dead cache is broken up when no thread took it for a while, or when the heap has to grow. Its blocks
// go into their slabs, and the shared cache becomes the owner of the slabs, also of full ones: they are orphans.
// Their blocks that are freed later arrive in its inbox. A cache that needs a slab first looks for an orphan.
//
// If there is none, it asks other caches, alive or dead, and only then the arena. If threads free what others
// allocated, the free blocks are not in the caches that need them; without this, each cache would keep the
// memory of its own peak in each class. A cache keeps the slab that it takes blocks from, and those that are
// mostly in use, so that threads with data of their own never share a slab.
#pragma once

#include "cache/cache.h"

// Take an orphan of `size_class` with free blocks: `cache` owns it from now on, but it is in no list yet.
// NULL when there is none. With the lock of `cache`.
HAK_INTERNAL struct hak_run *hak_reclaim_slab(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// The same with a slab of another cache that has more than one. Asks some caches, and others the next time.
HAK_INTERNAL struct hak_run *hak_reclaim_spare_slab(struct hak_cache *cache, unsigned size_class);
// Make orphans of other threads' slabs that have free blocks, of `size_class` or a larger class with that alignment, for a `taker`
// that was refused memory. False: there are none, or the taker takes no orphans. Without a lock.
HAK_INTERNAL HAK_COLD bool hak_reclaim_share(const struct hak_owner *taker,
                                             unsigned size_class,
                                             size_t alignment);
// Free `block` of another owner, whose map entry is `entry`. If the owner is dead and `cache` allocates the class, `cache` reclaims
// the slab and the block goes into its magazine; if not, into a parcel (inbox.h). True: a parcel was sent, so there may be memory
// to give back. The thread's own cache, not locked.
HAK_INTERNAL bool hak_reclaim_or_post(struct hak_cache *cache, void *block, uint32_t entry);
// Break up a dead cache, at most `slabs` slabs of it in this call. With its lock. False: some are left, and it is
// still whole.
enum { HAK_RECLAIM_SOME = 256 };
HAK_INTERNAL bool hak_reclaim_break_up(struct hak_cache *cache, unsigned slabs)
    HAK_REQUIRES(&cache->owner.lock);
// The same, if the cache still is dead and whole and its lock is free. The second does so with some dead caches, those that died
// last, and returns how many. The caller may hold the lock of its own cache.
HAK_INTERNAL bool hak_reclaim_break_up_dead(struct hak_cache *cache, unsigned slabs);
HAK_INTERNAL unsigned hak_reclaim_break_up_some(void);
