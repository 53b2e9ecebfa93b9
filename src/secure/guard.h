// guard.h -- a sample of the small blocks, each between pages that nobody can touch.
//
// Owns      a span of addresses with a slot for each sampled block, and who allocated and freed it.
// Threads   any; no lock: a slot is taken by a compare-and-swap of its state.
// Fails     without a free slot or without mappings the request gets an ordinary block.
//
// GWP-ASan's idea ("GWP-ASan: Sampling-Based Detection of Memory-Safety Bugs in Production", 2024), adapted:
// of the requests that take the slow path anyway, one in option guard_sample gets a slot, so the fast paths
// know nothing of it. The block ends at the end of its page, as far as its alignment allows: an overflow
// faults at once. The page of a freed block cannot be touched, and the slot is used again only after all
// others have had their turn: a use after free faults, too. The rest of the block's page is zeros, which
// the free checks.
//
// The fault handler reports who allocated and freed the block, and passes the signal on to the program.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"
#include "cache/cache.h"
#include "cache/request.h"
#include "meta/size_class.h"
#include "slab/arena.h"

enum { HAK_GUARD_FRAMES = 16, HAK_GUARD_SLOTS = 511 };

enum hak_guard_state {
    HAK_GUARD_FREE, // `block` is the latest one, if any
    HAK_GUARD_BUSY, // a thread is changing it
    HAK_GUARD_LIVE,
};

struct hak_guard_call {
    int thread_id;
    unsigned frame_count;
    uintptr_t frames[HAK_GUARD_FRAMES]; // the program's call first
};

struct hak_guard_slot {
    _Atomic(uint32_t) state; // enum hak_guard_state
    bool is_open;            // free, but its page can be touched: the kernel refused to guard it
    _Atomic(char *) block;   // others read this and `bytes` while they may change
    _Atomic(size_t) bytes;   // as asked for
    struct hak_guard_call allocated;
    struct hak_guard_call freed;
};

struct hak_guard_table {
    struct hak_guard_slot slots[HAK_GUARD_SLOTS];
};

struct hak_guard {
    _Atomic(char *) base;  // NULL until the first sample
    _Atomic(void *) table; // struct hak_guard_table; there before `base`
};
HAK_INTERNAL extern struct hak_guard hak_guard;

// Is it an address of the slots?
HAK_INLINE bool hak_guard_owns(const void *p)
{
    const char *base = hak_load_relaxed(&hak_guard.base);
    return HAK_UNLIKELY(base != NULL && (uintptr_t)p - (uintptr_t)base < HAK_SUPER_BYTES);
}

// Does this request of the slow path get a slot? By the thread of the cache. A cache without a thread has none: several threads
// would count at the same time.
HAK_INLINE bool hak_guard_is_due(struct hak_cache *cache)
{
    const uint64_t one_in = hak_load_relaxed(&hak_options.guard_sample);
    if (HAK_LIKELY(one_in == 0 || !cache->owner.has_thread || ++cache->unguarded < one_in)) {
        return false;
    }
    cache->unguarded = 0;
    return true;
}

// Returns a block with the alignment of the class and of the request, or NULL.
HAK_INTERNAL void *hak_guard_take(struct hak_request request, unsigned size_class);
// Free the block. Dies with a report unless it is in use. `site`: where the program's call returns to.
HAK_INTERNAL void hak_guard_put(void *block, const void *site);
// Call `visit` with each block in use until it returns false. True if all were visited. The arena's lock keeps the blocks' pages
// from being closed.
HAK_INTERNAL bool hak_guard_visit(bool (*visit)(void *start, size_t bytes, void *argument),
                                  void *argument) HAK_REQUIRES(&hak_arena.lock);

// The slot whose block lies nearest. hak_guard_report prints the kind of a misuse, the distance of `p` from
// the block's start, and the calls that allocated and freed the block.
HAK_INTERNAL struct hak_guard_slot *hak_guard_nearest(const void *p);
HAK_INTERNAL void hak_guard_report(const char *kind,
                                   const struct hak_guard_slot *slot,
                                   const char *p);
// Install the fault handler if the option is on or blocks have tags. Once.
HAK_INTERNAL void hak_guard_start(void);
