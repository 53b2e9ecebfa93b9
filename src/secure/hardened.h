// hardened.h -- a cache's stock of free blocks that are looked at one by one, and its quarantine.
//
// Layer     secure
// Owns      struct hak_hardened of a cache: of a thread's and of a heap's, once it has needed it.
// Threads   a thread's: that thread, without a lock, between hak_hardened_enter and hak_hardened_leave; once it has
//           ended, or when it is not inside (hak_hook_empty), whoever holds the cache's lock. A heap's:
//           whoever holds its lock.
// Fails     NULL without memory.
//
// Mode secure looks at each block when it is freed and before it is used again (secure/harden.h), so a magazine
// has no use for it: its paths touch no block. In its place a cache has, for each class, a stock of free blocks,
// of which chance (option random_order) takes the next; it is filled from the slabs, and empties into them, many at a time. A freed
// block waits in the quarantine until enough bytes were freed behind it, and then goes into the stock, if
// its slab is the cache's. Foreign blocks, those of other owners, are gathered, and go back to their slabs
// together. docs/decisions/0024 says why.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"
#include "secure/states.h"

enum { HAK_QUARANTINE_BLOCKS = 4096, HAK_FOREIGN_BLOCKS = 32 };
// What is held: a block of the cache's by its class, HAK_FOREIGN more for others'. Only the cache's own have stocks:
// those of the others, and of the class behind the last, are empty and full at once.
enum { HAK_FOREIGN = HAK_SMALL_CLASSES + 1, HAK_STOCKS = HAK_FOREIGN + HAK_SMALL_CLASSES };

struct hak_stock {
    struct hak_held *blocks;
    uint32_t count;
    uint32_t room;
    size_t bytes; // of a block
};

struct hak_hardened {
    struct hak_cache *cache; // whose it is
    uint64_t chance;         // hak_harden_next
    // The quarantine, a ring: where the oldest is, the place for the next one (always empty), and their bytes.
    uint32_t first;
    _Atomic(uint32_t) next; // others read it, to see whether the thread is at work
    size_t bytes;
    // It held nothing when `next` was this. Written by who may work on it, or is about to give it blocks (see
    // hak_hook_is_bare).
    _Atomic(uint32_t) bare_next;
    _Atomic(bool) was_bare;
    uint32_t foreign_count;
    char *foreign[HAK_FOREIGN_BLOCKS];
    struct hak_stock stocks[HAK_STOCKS];
    struct hak_held held[HAK_QUARANTINE_BLOCKS];
    uint8_t kinds[HAK_QUARANTINE_BLOCKS];
};

// The thread begins to work on what it holds without the lock; NULL: it has none yet, or somebody empties it at this
// moment, with the lock. Whoever empties it says so first and then looks, with a barrier between that orders both
// sides, as in steal.h. Step enter of quarantine.pml.
HAK_INLINE struct hak_hardened *hak_hardened_enter(struct hak_cache *cache)
{
    hak_store_relaxed(&cache->is_inside, true);
    hak_fence_compiler();
    return hak_load_acquire(&cache->hardened); // pairs with: hak_hook_empty
}

// Step leave of quarantine.pml.
HAK_INLINE void hak_hardened_leave(struct hak_cache *cache)
{
    hak_store_release(&cache->is_inside, false); // pairs with: hak_hook_empty
}

// Changes with every free of the thread's.
HAK_INLINE uint64_t hak_hardened_events(struct hak_cache *cache)
{
    const struct hak_hardened *hardened =
        hak_load_acquire(&cache->hardened); // pairs with: hak_hook_empty
    return hardened != NULL ? hak_load_relaxed(&hardened->next) : 0;
}

// The class for a request that would be of `size_class`: with room for what is put behind the block.
// HAK_SMALL_CLASSES: a large block. Aligned requests come with a class that has room (hak_aligned_class).
HAK_INLINE unsigned hak_hardened_class(unsigned size_class, size_t bytes)
{
    const size_t room = hak_harden_room(bytes);
    if (HAK_LIKELY(room <= HAK_TINY_MAX)) {
        const unsigned least = (unsigned)hak_size_class_of_tiny(room);
        return size_class > least ? size_class : least;
    }
    while (size_class < HAK_SMALL_CLASSES && hak_classes[size_class].bytes < room) {
        size_class++;
    }
    return size_class;
}

// malloc without a block that waits here: what other features have, else the core's (src/hooks.c).
HAK_INTERNAL void *hak_hardened_malloc_unusual(struct hak_request request, size_t size_class);
// malloc's slow path and free's in a thread that has entered its cache's. All that is out of the ordinary they leave
// to hak_hardened_malloc_unusual and hak_hardened_free_unusual.
HAK_INTERNAL void *hak_hardened_malloc(size_t bytes,
                                       size_t size_class,
                                       const void *site,
                                       struct hak_cache *cache,
                                       struct hak_hardened *hardened,
                                       size_t alignment);
HAK_INTERNAL void hak_hardened_free(void *block,
                                    struct hak_cache *cache,
                                    struct hak_hardened *hardened);
// Free a small block, a hardened one or a thread's that keeps no magazines. Never by a parcel: nobody looks at what goes into
// parcels.
HAK_INTERNAL void hak_hardened_free_unusual(void *block);

// Take a block of the class out of the stock, filling it if it is empty. With the lock; the thread.
HAK_INTERNAL void *hak_hardened_refill(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock);
// Put a block that the program has freed into quarantine, or back into its slab if the cache has none. `has_lock`:
// that of `cache`, whose the block is then. True when a slab has ended with that.
HAK_INTERNAL bool hak_hardened_hold(struct hak_cache *cache,
                                    struct hak_held held,
                                    unsigned size_class,
                                    bool has_lock);

// The cache is dead, and nothing is in it: the tables go.
HAK_INTERNAL void hak_hardened_end(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);

// The steps of a malloc and a free that touch the block, as functions of what it is looked at for. For hardened.c and
// hardened_secure.c alone.

// Any of them, or the one that came last.
HAK_INLINE struct hak_held hak_hardened_pick(struct hak_hardened *hardened,
                                             struct hak_stock *stock,
                                             bool random_order)
{
    const struct hak_held last = stock->blocks[--stock->count];
    if (!random_order) {
        return last;
    }
    const uint64_t chance = hak_harden_next(&hardened->chance) >> 32;
    struct hak_held *place = &stock->blocks[chance * (stock->count + 1) >> 32];
    const struct hak_held picked = *place;
    *place = last;
    return picked;
}

// What was picked, for a request. The last of a malloc's steps.
HAK_INLINE void *hak_hardened_hand_out(struct hak_cache *cache,
                                       struct hak_held picked,
                                       size_t block_bytes,
                                       size_t bytes,
                                       struct hak_checks checks)
{
    hak_hardened_leave(cache); // with the block in hand
    return hak_states_take(picked, block_bytes, bytes, checks);
}

HAK_INLINE size_t hak_hardened_behind(size_t place)
{
    return (place + 1) % HAK_QUARANTINE_BLOCKS;
}

// Into the place for the next one, where it is not in the quarantine yet.
HAK_INLINE void hak_hardened_put(struct hak_hardened *hardened, struct hak_held held, unsigned kind)
{
    const size_t place = hak_load_relaxed(&hardened->next);
    hardened->held[place] = held;
    hardened->kinds[place] = (uint8_t)kind;
}

// Now it is, a block of `bytes`. True when some have to leave the quarantine.
HAK_INLINE bool hak_hardened_add(struct hak_hardened *hardened, size_t bytes)
{
    const size_t next = hak_hardened_behind(hak_load_relaxed(&hardened->next));
    hak_store_relaxed(&hardened->next, (uint32_t)next);
    hardened->bytes += bytes;
    return hardened->bytes > hak_harden.quarantine_limit ||
           hak_hardened_behind(next) == hardened->first;
}

// Enough lies in the quarantine: the oldest leave it, and the thread leaves what it holds.
HAK_INTERNAL void hak_hardened_leave_late(struct hak_hardened *hardened);

// The program frees a block of `bytes`, which it has. The last of a free's steps.
HAK_INLINE void hak_hardened_give(struct hak_hardened *hardened,
                                  struct hak_held held,
                                  size_t bytes,
                                  uint32_t size_class,
                                  struct hak_checks checks)
{
    hak_hardened_put(hardened, held, size_class); // first: that frees registers
    if (!hak_states_give(held, bytes, checks)) {
        return;
    }
    if (HAK_UNLIKELY(hak_hardened_add(hardened, bytes))) {
        hak_hardened_leave_late(hardened);
    } else {
        hak_hardened_leave(hardened->cache);
    }
}

// Both with all that mode secure asks for (hak_harden.is_secure), in hardened_secure.c.
HAK_INTERNAL void *hak_hardened_take_secure(size_t bytes,
                                            struct hak_stock *stock,
                                            struct hak_hardened *hardened,
                                            struct hak_cache *cache);
// A block of up to hak_harden.usual_bytes.
HAK_INTERNAL void hak_hardened_give_secure(char *block,
                                           size_t bytes,
                                           uint32_t size_class,
                                           hak_state *state,
                                           struct hak_hardened *hardened);
