// slabs.h -- a cache's slabs: taking blocks out of them, and putting them back. With the cache's lock.
//
// Layer     cache
// Threads   any that holds the lock.
// Fails     NULL, or fewer, without memory.
#ifndef HAK_CACHE_SLABS_H
#define HAK_CACHE_SLABS_H

#include "cache/cache.h"

// Take up to `count` blocks from the slabs that have some; a new slab only when none has. Returns how many.
HAK_INTERNAL unsigned hak_cache_take_many(struct hak_cache *cache,
                                          unsigned size_class,
                                          void **blocks,
                                          unsigned count) HAK_REQUIRES(&cache->lock);
// Put `block`, of a slab of `cache`, back into its slab. True when the slab has ended with that. Any
// thread with the lock.
HAK_INTERNAL bool hak_cache_put(struct hak_cache *cache, struct hak_slab *slab, void *block);
// Put the block in places[0] back into `slab`, where it lies, and those after it, `count` at most, up to
// the first that lies elsewhere. Returns how many. Any thread with the lock.
HAK_INTERNAL unsigned hak_cache_put_row(struct hak_cache *cache,
                                        struct hak_slab *slab,
                                        hak_place *places,
                                        unsigned count);
// Take one block from the slabs of `cache`, past its magazine. Any thread with the lock.
HAK_INTERNAL void *hak_cache_take(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock);
// As above, but never handed out before: NULL when there is none. `zeroed`: its pages are untouched.
HAK_INTERNAL void *hak_cache_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed);
// The class's slabs with blocks to give: those whose free pages may be there; and those that were swept.
HAK_INTERNAL struct hak_list *hak_cache_slabs(struct hak_cache *cache, unsigned size_class);
HAK_INTERNAL struct hak_list *hak_cache_swept_slabs(struct hak_cache *cache, unsigned size_class);
// The first of both; NULL when there is none.
HAK_INTERNAL struct hak_slab *hak_cache_first_slab(struct hak_cache *cache, unsigned size_class);
// Put a slab that is in no list to the end of the one in which it belongs.
HAK_INTERNAL void hak_cache_list_slab(struct hak_cache *cache, struct hak_slab *slab);
// The process ends, and who ends it waits for no lock: no slab ends any more, no empty parcel goes to the pool, and a block of
// another owner is not sent on.
HAK_INTERNAL extern _Atomic(bool) hak_cache_ends_nothing;
// Give a slab of `cache`, which is in no list, back to the arena.
HAK_INTERNAL void hak_cache_end_slab(struct hak_cache *cache, struct hak_slab *slab);
// Note whether there is more than one of them. Any thread with the lock. And is there another cache of a thread that has more
// than one, or had when the sweeper was last there? A hint; with the lock of `cache`.
HAK_INTERNAL void hak_cache_note_spare(struct hak_cache *cache, unsigned size_class);
HAK_INTERNAL bool hak_cache_is_any_spare(const struct hak_cache *cache, unsigned size_class);
// The sweeper is there: a cache that has no more than one is not counted any longer. With the lock.
HAK_INTERNAL void hak_cache_count_spare(struct hak_cache *cache, unsigned size_class);

#endif
