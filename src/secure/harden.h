// harden.h -- what the hardening options make of a block of a slab: its canary, its zeros, chance.
//
// Layer     secure
// Owns      hak_harden: the options as they were at the start, and the process's secret.
// Threads   hak_harden_start: once, before the program's main. The others: any, for a block that nobody
//           else has.
// Fails     misuse dies with a line.
//
// A hardened slab (hak_run.is_hardened) is one that was made when the options were known. Of its blocks
//   zero_on_free   those that are free hold zeros, from their first byte to their last;
//   canaries       those in use end like this, where `request` is what the program asked for:
//
//       request bytes | padding: a byte that depends on the address | 8 bytes: the canary
//
//                  The canary is a keyed mix of the block's address; its upper 16 bits tell, hidden by
//                  the mix, how long the padding is. Of the padding the first and the last 8 bytes are written.
//                  The first byte of both has its top bit set: no overrun string writes that.
//   tagging        those in use have a tag (os/tags.h), which their neighbours and their latest users have not;
//                  all other memory of the slabs has tag 0. Plain pointers, without a tag, are what we know blocks by.
#pragma once

#include "base/compiler.h"
#include "os/tags.h"

// What a block is looked at for, when it is freed and before it is used again.
struct hak_checks {
    bool zero;
    bool canaries;
};
#define HAK_CHECKS_ALL ((struct hak_checks){true, true})

struct hak_harden {
    bool is_on;     // any of the options
    bool sees_all;  // any but random_order: caches keep no magazines
    bool is_secure; // both looks and random_order, as in the mode: what the paths are made for
    struct hak_checks checks;
    bool random_order;
    size_t usual_bytes;      // of a block that a free clears without a call: none unless is_secure
    size_t canary_bytes;     // behind each block: HAK_CANARY_BYTES, or none
    size_t quarantine_bytes; // that a freed block waits for
    size_t quarantine_limit; // that wait before some leave
    uint64_t plain_requests; // that need no look at the options guard_sample and fail_*, in a row
    uint64_t secret;
    uint64_t multiplier; // as secret, and odd
    bool has_tags;       // option tagging, and all that it needs
};
HAK_INTERNAL extern struct hak_harden hak_harden;

HAK_INTERNAL void hak_harden_start(void);

// Do blocks of hardened slabs have tags while the program has them?
HAK_INLINE bool hak_harden_has_tags(void)
{
    return HAK_MTE && hak_harden.has_tags;
}

enum {
    HAK_CANARY_BYTES = 8,
    HAK_HARDEN_CLEAR_MAX =
        1024, // up to so many bytes a block is cleared without a call, which is faster
};

// What a request needs with its canary.
HAK_INLINE size_t hak_harden_room(size_t bytes)
{
    return bytes + hak_harden.canary_bytes;
}

// Every bit of the result depends on all of `x` and of the secret. One wide product, as in Wang Yi's wyhash.
HAK_INLINE uint64_t hak_harden_mix(uint64_t x)
{
    const hak_wide product = (hak_wide)(x ^ hak_harden.secret) * (hak_harden.multiplier);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Numbers that cannot be foreseen without reading our memory: the next of a sequence of one's own, which
// begins with hak_harden_seed.
HAK_INTERNAL uint64_t hak_harden_seed(void);
HAK_INLINE uint64_t hak_harden_next(uint64_t *sequence)
{
    *sequence += UINT64_C(0x9E3779B97F4A7C15);
    return hak_harden_mix(*sequence);
}
