// sweep.h -- passes over the caches: memory that waits goes back, also when its thread sleeps.
//
// Threads   any; one lock, rank "sweep".
//
// A pass goes over the caches that are watched (watch.h): large blocks kept for longer than the decay time, magazines and
// slabs that nobody used meanwhile, parcels for threads that sleep. sweeper.h has who takes it when.
#pragma once

#include <limits.h>

#include "base/compiler.h"
#include "cache/sweep_cache.h"

// What of a pass is taken together.
struct hak_sweep_share {
    unsigned caches; // that are visited
    unsigned lots;   // of slabs whose pages are given back, some 100 us each
};

// So many ticks have passed (0: it is the same): take a share of a pass. `tries_again`: also pages that the kernel has not
// taken before. One thread at a time.
HAK_INTERNAL struct hak_sweep_found hak_sweep_tick(uint64_t ticks,
                                                   bool tries_again,
                                                   struct hak_sweep_share share);

// Does a large block wait in any cache, or is one to be broken up?
HAK_INTERNAL bool hak_sweep_is_any_kept(void);

// Give back, now, everything that can be given back. Returns the bytes of the pages that left this process; where there were none,
// those of addresses.
HAK_INTERNAL size_t hak_sweep_everything(void);
// A request that is tried again.
struct hak_sweep_retry {
    uint64_t mark; // a moment (os/refusal.h): before the first refusal, then before the latest try
    uint32_t returns; // what hak_arena_returns said then
    unsigned tries;
};
// The same for a request that was refused since `retry->mark`. If it was the kernel that refused it, that is for addresses: it
// counts those, resident or not, so the pages of others may stay. A block that a limit does not let grow where it lies needs the
// addresses behind it: they stay.
HAK_INTERNAL void hak_sweep_for_request(struct hak_sweep_retry *retry);
// It was refused once more. Have others freed since, or are they about to, so that there may be `bytes` after another sweep? After
// some tries: no.
HAK_INTERNAL bool hak_sweep_may_help(struct hak_sweep_retry *retry, size_t bytes);
