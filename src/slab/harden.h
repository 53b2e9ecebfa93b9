// harden.h -- what the hardening options make of a block of a slab: its canary, its zeros, chance.
//
// Layer     slab
// Owns      hak_harden: the options as they were at the start, and the process's secret.
// Threads   hak_harden_start: once, before the program's main. The others: any, for a block that nobody
//           else has.
// Fails     misuse dies with a line.
//
// A hardened slab (hak_slab.is_hardened) is one that was made when the options were known. Of its blocks
//   zero_on_free   those that are free hold zeros, from their first byte to their last;
//   canaries       those in use end like this, where `request` is what the program asked for:
//
//       request bytes | padding: a byte that depends on the address | 8 bytes: the canary
//
//                  The canary is a keyed mix of the block's address; its upper 16 bits tell, hidden by
//                  the mix, how long the padding is. Of the padding the first 16 bytes are written.
//                  The first byte of both has its top bit set: no overrun string writes that.
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct hak_harden {
    bool is_on;    // any of the four that follow
    bool sees_all; // any but random_order: caches keep no magazines
    bool zero;
    bool canaries;
    bool random_order;
    size_t quarantine_bytes;
    uint64_t secret;
};
HAK_INTERNAL extern struct hak_harden hak_harden;

HAK_INTERNAL void hak_harden_start(void);

enum { HAK_CANARY_BYTES = 8 };

// What a request needs with its canary.
HAK_INLINE size_t hak_harden_room(size_t bytes)
{
    return HAK_UNLIKELY(hak_harden.canaries) ? bytes + HAK_CANARY_BYTES : bytes;
}

// A block of `block_bytes` leaves its slab for a request: dies if it was written to since it was freed.
HAK_INTERNAL void hak_harden_leaves(char *block, size_t block_bytes, size_t request);
// It is freed: dies if its end was overwritten.
HAK_INTERNAL void hak_harden_returns(char *block, size_t block_bytes);
// Die if a block that is free, or one in use, is not as it has to be.
HAK_INTERNAL void hak_harden_check_free(const char *block, size_t block_bytes);
HAK_INTERNAL void hak_harden_check_used(const char *block, size_t block_bytes);
// Give a block in use another request. False when it has no room.
HAK_INTERNAL bool hak_harden_resize(char *block, size_t block_bytes, size_t request);
// What was asked for; 0 when the canary does not say.
HAK_INTERNAL size_t hak_harden_request(const char *block, size_t block_bytes);

// A number that cannot be foreseen without reading our memory.
HAK_INTERNAL uint64_t hak_harden_random(void);

// Are they all zero?
HAK_INTERNAL bool hak_harden_is_zero(const char *start, size_t bytes);

#endif
