// hardened_steps.h -- the steps of a malloc and a free that touch the block, as functions of what it is looked at for.
//
// Layer     secure (hardened.c and hardened_secure.c alone include it)
// Threads   as hardened.h.
#ifndef HAK_CACHE_HARDENED_STEPS_H
#define HAK_CACHE_HARDENED_STEPS_H

#include "secure/hardened.h"

// Any of them, or the one that came last.
HAK_INLINE struct hak_held hak_stock_pick(struct hak_hardened *hardened,
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
HAK_INLINE void *hak_stock_hand_out(struct hak_cache *cache,
                                    struct hak_held picked,
                                    size_t block_bytes,
                                    size_t bytes,
                                    struct hak_looks looks)
{
    hak_hardened_leave(cache); // with the block in hand
    return hak_states_take(picked, block_bytes, bytes, looks);
}

HAK_INLINE size_t hak_quarantine_behind(size_t place)
{
    return (place + 1) % HAK_QUARANTINE_BLOCKS;
}

// Into the place for the next one, where it is not in the quarantine yet.
HAK_INLINE void hak_quarantine_put(struct hak_hardened *hardened,
                                   struct hak_held held,
                                   unsigned kind)
{
    const size_t place = hak_load_relaxed(&hardened->next);
    hardened->held[place] = held;
    hardened->kinds[place] = (uint8_t)kind;
}

// Now it is, a block of `bytes`. True when some have to leave the quarantine.
HAK_INLINE bool hak_quarantine_add(struct hak_hardened *hardened, size_t bytes)
{
    const size_t next = hak_quarantine_behind(hak_load_relaxed(&hardened->next));
    hak_store_relaxed(&hardened->next, (uint32_t)next);
    hardened->bytes += bytes;
    return hardened->bytes > hak_harden.quarantine_limit ||
           hak_quarantine_behind(next) == hardened->first;
}

// Enough lies in the quarantine: the oldest leave it, and the thread leaves what it holds.
HAK_INTERNAL void hak_hardened_leave_late(struct hak_hardened *hardened);

// The program frees a block of `bytes`, which it has. The last of a free's steps.
HAK_INLINE void hak_hardened_give(struct hak_hardened *hardened,
                                  struct hak_held held,
                                  size_t bytes,
                                  uint32_t size_class,
                                  struct hak_looks looks)
{
    hak_quarantine_put(hardened, held, size_class); // first: that frees registers
    if (!hak_states_give(held, bytes, looks)) {
        return;
    }
    if (HAK_UNLIKELY(hak_quarantine_add(hardened, bytes))) {
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

#endif
