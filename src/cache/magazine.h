// magazine.h -- filling and emptying magazines. The caller holds the cache's lock.
//
// Layer     cache
// Threads   the cache's own thread (or the holder of a heap's lock), unless it says "any".
#ifndef HAK_CACHE_MAGAZINE_H
#define HAK_CACHE_MAGAZINE_H

#include "cache/cache.h"

// Fill the empty magazine of a class and take one block from it. NULL without memory.
HAK_INTERNAL void *hak_magazine_refill(struct hak_cache *cache, unsigned size_class);
// Fill all magazines that are empty, and have the kernel give the pages of the blocks.
HAK_INTERNAL void hak_magazine_prewarm(struct hak_cache *cache);
// Make room in a full magazine and put `block` into it.
HAK_INTERNAL void hak_magazine_spill(struct hak_cache *cache, unsigned size_class, void *block);
// Put every block of every magazine back to where it belongs.
HAK_INTERNAL void hak_magazine_flush_all(struct hak_cache *cache);
// Do without magazines from now on; they are empty.
HAK_INTERNAL void hak_magazine_end_all(struct hak_cache *cache);
// A slab or large block of `new_bytes` is needed. If they have become many since the last time: empty the
// magazines that were not in use, and true. The owner, with the lock.
HAK_INTERNAL bool hak_magazine_tidy(struct hak_cache *cache, size_t new_bytes);
// Forget the blocks in all magazines: their slabs are about to end.
HAK_INTERNAL void hak_magazine_forget_all(struct hak_cache *cache);
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
HAK_INTERNAL void *hak_cache_take(struct hak_cache *cache, unsigned size_class);
// As above, but never handed out before: NULL when there is none. `zeroed`: its pages are untouched.
HAK_INTERNAL void *hak_cache_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed);
// End the slabs of a class that hold all their blocks. Any thread with the lock.
HAK_INTERNAL void hak_cache_end_idle_slabs(struct hak_cache *cache, unsigned size_class);
// The class's slabs with blocks to give.
HAK_INTERNAL struct hak_list *hak_cache_slabs(struct hak_cache *cache, unsigned size_class);
// Note whether there is more than one of them. Any thread with the lock.
HAK_INTERNAL void hak_cache_note_spare(struct hak_cache *cache, unsigned size_class);

#endif
