// sweep.h -- passes over the caches, which give back memory that waits, also that of threads that sleep.
//
// Threads   any; one lock, rank "sweep".
//
// A pass visits the watched caches (watch.h): it gives back large blocks kept for longer than the decay time, flushes magazines and
// purges slabs that were not in use, and drains inboxes of threads that sleep. sweeper.h says which thread takes it, and when.
#pragma once

#include <limits.h>

#include "base/compiler.h"
#include "cache/sweep_cache.h"

// The most that one call takes of a pass.
struct hak_sweep_share {
    unsigned caches; // visited
    unsigned lots;   // of slabs whose pages are purged, some 100 us each
};

// `ticks` ticks have passed (0: still the same): take a share of a pass. `tries_again`: also pages that the kernel refused
// before. One thread at a time.
HAK_INTERNAL struct hak_sweep_found hak_sweep_tick(uint64_t ticks,
                                                   bool tries_again,
                                                   struct hak_sweep_share share);

// Does a large block wait in any cache, or is a dead cache to be broken up?
HAK_INTERNAL bool hak_sweep_is_any_kept(void);

// Give back at once everything that can be given back. Returns how many bytes were purged; if none, how many bytes of addresses
// were released.
HAK_INTERNAL size_t hak_sweep_everything(void);
// A request that is tried again.
struct hak_sweep_retry {
    uint64_t mark; // a moment (os/refusal.h): before the first refusal, then before the latest try
    uint32_t returns; // hak_arena_returns at that moment
    unsigned tries;
};
// The same for a request that was refused since `retry->mark`. The kernel refuses addresses, resident or not: if it did, pages of
// free units are not purged. If a limit did not let a block grow where it lies, the block needs the addresses behind it: none are
// released.
HAK_INTERNAL void hak_sweep_for_request(struct hak_sweep_retry *retry);
// The request was refused again. Have other threads freed since, or are they about to, so that another sweep may yield `bytes`?
// After some tries: no.
HAK_INTERNAL bool hak_sweep_may_help(struct hak_sweep_retry *retry, size_t bytes);
