// reclaim.h -- what ended threads leave behind, and what others have to spare.
//
// Threads   any.
//
// The cache of a thread that ends stays whole for the next one that starts, blocks and slabs
// and all. Meanwhile a thread that frees a block of a dead cache takes the slab over, if it
// allocates blocks of that class itself: mostly it goes on with a predecessor's data, and the rest
// of them are then freed without a detour. (A thread that only frees must not own slabs.)
//
// A dead cache that nobody wanted for a while, or when the heap has to grow, is broken up: its
// blocks go back to their slabs, and those, full ones too, to the shared cache: they are orphans. Blocks
// of them that are freed later arrive in its inbox. Whoever needs a slab takes an orphan before it asks the arena.
//
// And then it asks the other caches, alive or dead. Where threads free what others allocated, the
// free blocks are not with those that need some; without this each cache would hold as much as the
// program's blocks of that class ever were in it. A cache keeps the slab that it takes from itself, and
// those that are mostly in use, so that threads with their own data never meet in one slab.
#pragma once

#include "cache/cache.h"

// A slab of `size_class` with blocks to give, an orphan that is now of `cache`; not linked
// in any list. NULL when there is none. With the lock of `cache`.
HAK_INTERNAL struct hak_run *hak_reclaim_slab(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);
// The same from another cache that has more than one. Some are asked, the next time others.
HAK_INTERNAL struct hak_run *hak_reclaim_spare_slab(struct hak_cache *cache, unsigned size_class);
// Slabs of other threads with blocks to give, of `size_class` or above and so aligned, become orphans, for a `taker` that is
// refused memory. False: there are none, or the taker takes no orphans. Without a lock.
HAK_INTERNAL HAK_COLD bool hak_reclaim_share(const struct hak_owner *taker,
                                             unsigned size_class,
                                             size_t alignment);
// Free `block` of another owner, whose map entry is `entry`: if the owner is dead and `cache` allocates blocks of the class, it
// takes the slab over and the block goes into its magazine; else into a parcel (inbox.h). True when a parcel has gone: there may
// be something to give back. The thread's own cache, not locked.
HAK_INTERNAL bool hak_reclaim_or_post(struct hak_cache *cache, void *block, uint32_t entry);
// Break up a dead cache, of which at most so many slabs go at this time. With its lock. False: some are left, and it is
// still whole.
enum { HAK_RECLAIM_SOME = 256 };
HAK_INTERNAL bool hak_reclaim_break_up(struct hak_cache *cache, unsigned slabs)
    HAK_REQUIRES(&cache->owner.lock);
// The same if it is still dead and whole and its lock is free; and so with some of those that there are, those that died
// last. The caller may hold the lock of its own cache. Returns how many there were.
HAK_INTERNAL bool hak_reclaim_break_up_dead(struct hak_cache *cache, unsigned slabs);
HAK_INTERNAL unsigned hak_reclaim_break_up_some(void);
