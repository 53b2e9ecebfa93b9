// hardened.h -- a cache's stocks of free blocks, each of which is checked, and its quarantine.
//
// Owns      struct hak_hardened of a thread's or a heap's cache, made when it is first needed.
// Threads   a thread's: that thread, without a lock, between hak_hardened_enter and hak_hardened_leave; the holder of
//           the cache's lock once the thread has ended, or while it is not inside (hak_hook_empty). A heap's: the
//           holder of its lock.
// Fails     NULL without memory.
//
// Mode secure checks each block when it is freed and before it is used again (secure/harden.h). Magazines do not
// suit that: their paths touch no block. Instead a cache has a stock of free blocks for each class. Option
// random_order takes them at random. A stock is refilled from the slabs and flushed into them, many blocks at a time.
// A freed block waits in the quarantine until enough bytes were freed after it. Then it goes into the stock if the
// cache owns its slab. Blocks of other owners ("foreign") go into their slabs.
// docs/decisions/0024 says why.
#pragma once

#include "cache/cache.h"
#include "cache/request.h"
#include "secure/states.h"

enum { HAK_QUARANTINE_BLOCKS = 4096 };
// The kind of a block in quarantine: its class, plus HAK_FOREIGN if another cache owns it. Only the cache's own classes
// have room in their stocks: those of the others, and of the class behind the last, are empty and full at once.
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
    // The quarantine, a ring: the place of the oldest block, the (always empty) place for the next, and the sum of the bytes.
    uint32_t first;
    _Atomic(uint32_t) next; // others read it, to see whether the thread is at work
    size_t bytes;
    // If was_bare: all was empty when `next` had this value. Written by the thread that may work on it, or is about to add
    // blocks (see hak_hook_is_bare).
    _Atomic(uint32_t) bare_next;
    _Atomic(bool) was_bare;
    struct hak_stock stocks[HAK_STOCKS];
    struct hak_held held[HAK_QUARANTINE_BLOCKS];
    uint8_t kinds[HAK_QUARANTINE_BLOCKS];
};

// The thread begins to work on its stocks and quarantine without the lock. NULL: it has none yet, or another thread is
// emptying them, with the lock. That thread takes the pointer away first and then looks at is_inside, with a barrier in
// between that orders both sides, as in steal.h. Step enter of quarantine.pml.
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

// The class for a request of `size_class` that also has room for the canary. HAK_SMALL_CLASSES: a large block.
// The class of an aligned request has that room already (hak_aligned_class).
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

// malloc when the stock is empty or another feature may have a say; else the core serves it (src/hooks.c).
HAK_INTERNAL void *hak_hardened_malloc_unusual(struct hak_request request, size_t size_class);
// The slow paths of malloc and free in a thread that has entered (hak_hardened_enter). They leave all unusual cases
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
// Free a small block that is hardened, or that a thread without magazines frees. Never by a parcel: blocks in parcels are not
// checked.
HAK_INTERNAL void hak_hardened_free_unusual(void *block);

// Take a block of the class out of the stock, and refill the stock first if it is empty. By the thread, with the lock.
HAK_INTERNAL void *hak_hardened_refill(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock);
// Put a block that the program has freed into quarantine, or into its slab if the cache has no quarantine. `has_lock`:
// the caller holds the lock of `cache`, which owns the block. True when a slab has ended with that.
HAK_INTERNAL bool hak_hardened_hold(struct hak_cache *cache,
                                    struct hak_held held,
                                    unsigned size_class,
                                    bool has_lock);

// Free the tables of a dead cache. They are empty.
HAK_INTERNAL void hak_hardened_end(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);

// The steps of malloc and free that touch the block, with the checks as parameters. Only for hardened.c and
// hardened_secure.c.

// Take a block out of the stock: a random one, or the one added last.
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

// Hand out the picked block for a request. The last step of malloc.
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

// Write the block into the next place of the ring. It is in the quarantine only after hak_hardened_add.
HAK_INLINE void hak_hardened_put(struct hak_hardened *hardened, struct hak_held held, unsigned kind)
{
    const size_t place = hak_load_relaxed(&hardened->next);
    hardened->held[place] = held;
    hardened->kinds[place] = (uint8_t)kind;
}

// Add this block, of `bytes`, to the quarantine. True when some blocks have to leave it.
HAK_INLINE bool hak_hardened_add(struct hak_hardened *hardened, size_t bytes)
{
    const size_t next = hak_hardened_behind(hak_load_relaxed(&hardened->next));
    hak_store_relaxed(&hardened->next, (uint32_t)next);
    hardened->bytes += bytes;
    return hardened->bytes > hak_harden.quarantine_limit ||
           hak_hardened_behind(next) == hardened->first;
}

// The quarantine is full: its oldest blocks leave it; then hak_hardened_leave.
HAK_INTERNAL void hak_hardened_leave_late(struct hak_hardened *hardened);

// Free a block of `bytes` that is in use. The last step of free.
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

// The last steps of malloc and free with all checks of mode secure (hak_harden.is_secure), in hardened_secure.c.
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
