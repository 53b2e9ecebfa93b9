// harden.h -- the hardening options of blocks of slabs: canaries, zeros, tags, random numbers.
//
// Owns      hak_harden: the options as they were at the start, and the process's secret.
// Threads   hak_harden_start: once, before the program's main. The others: any, for a block that no other
//           thread uses meanwhile.
// Fails     misuse dies with a line.
//
// A hardened slab (hak_run.is_hardened) was made when the options were known. In its blocks the options do this:
//   zero_on_free   a free block holds zeros, from its first byte to its last;
//   canaries       a block in use ends like this, where `request` is what the program asked for:
//
//       request bytes | padding: a byte that depends on the address | 8 bytes: the canary
//
//                  The canary is a keyed hash of the block's address; its upper 16 bits are xored with the
//                  length of the padding. Only the first and the last 8 bytes of the padding are written.
//                  The first byte of both has its top bit set, which no ASCII string that overruns writes.
//   tagging        a block in use has a tag (os/tags.h) that differs from its neighbours' and from its own last one;
//                  all other memory of the slabs has tag 0. The allocator itself uses plain pointers, without a tag.
#pragma once

#include "base/compiler.h"
#include "os/tags.h"

// What is checked in a block, when it is freed and before it is used again.
struct hak_checks {
    bool zero;
    bool canaries;
};
#define HAK_CHECKS_ALL ((struct hak_checks){true, true})

struct hak_harden {
    bool is_on;     // any of the options
    bool sees_all;  // any but random_order: caches keep no magazines
    bool is_secure; // both checks and random_order, as in mode secure; its paths are tuned
    struct hak_checks checks;
    bool random_order;
    size_t usual_bytes;      // up to this a free clears a block without a call; 0 unless is_secure
    size_t canary_bytes;     // behind each block: HAK_CANARY_BYTES, or 0
    size_t quarantine_bytes; // a freed block waits until so many were freed after it
    size_t quarantine_limit; // at most this much waits before some blocks leave
    uint64_t plain_requests; // in a row without a check of options guard_sample and fail_*
    uint64_t secret;
    uint64_t multiplier; // also secret, and odd
    bool has_tags;       // option tagging is on, and all that it needs is there
};
HAK_INTERNAL extern struct hak_harden hak_harden;

HAK_INTERNAL void hak_harden_start(void);

// Do blocks of hardened slabs have tags while they are in use?
HAK_INLINE bool hak_harden_has_tags(void)
{
    return HAK_MTE && hak_harden.has_tags;
}

enum {
    HAK_CANARY_BYTES = 8,
    HAK_HARDEN_CLEAR_MAX =
        1024, // a block of up to this size is cleared without a call, which is faster
};

// The bytes that a request needs, with its canary.
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

// Random numbers that nobody can predict without reading our memory. hak_harden_seed begins a new sequence;
// hak_harden_next returns the next number of one.
HAK_INTERNAL uint64_t hak_harden_seed(void);
HAK_INLINE uint64_t hak_harden_next(uint64_t *sequence)
{
    *sequence += UINT64_C(0x9E3779B97F4A7C15);
    return hak_harden_mix(*sequence);
}
