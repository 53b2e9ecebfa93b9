// sweep.h -- memory that waits goes back, also when its thread sleeps.
//
// Layer     cache
// Threads   any; one lock, rank "sweep", the first of all.
//
// The sweeper is a thread of our own (os/thread.c) that lives only while something waits:
// it starts when a free makes enough memory idle and ends when that has gone back.
// It takes a pass over the caches that it watches (watch.h) every HAK_TICK_MS: large blocks kept for longer
// than the decay time, magazines and slabs that nobody used meanwhile, parcels that
// wait for a sleeping owner, free units.
#ifndef HAK_CACHE_SWEEP_H
#define HAK_CACHE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

#define HAK_TICK_MS 100

// 1: the sweeper's thread exists.
HAK_INTERNAL extern _Atomic(uint32_t) hak_sweep_runs;

// Something was freed that may have to go back: start the sweeper if it is worth it.
// `kept_bytes`: a block that the caller's cache has just kept.
HAK_INTERNAL void hak_sweep_wanted(size_t kept_bytes);

// Call `work` in each tick from now on, with no lock held. `has_to_stay`: the sweeper then lives as long as the process, or
// until option purger is off. When options are known, by two at most.
HAK_INTERNAL void hak_sweep_call(void (*work)(void), bool has_to_stay);
// Not any more: from the sweeper's thread, which may then end.
HAK_INTERNAL void hak_sweep_call_no_more(void (*work)(void));
// And this, with no lock held, when the heap was not allowed to grow (hak_pressure_allows), before all is given back.
HAK_INTERNAL void hak_sweep_call_in_need(void (*work)(void));

// What does not wait for the decay time any more; each includes those before it, which are less likely to be used
// again soon.
enum hak_hurry {
    HAK_HURRY_NONE,
    HAK_HURRY_FREE, // pages of free units: they wait for a tick
    HAK_HURRY_KEPT, // and large blocks that caches keep
    HAK_HURRY_IDLE, // and what caches and classes hold that were not used for a tick
};
HAK_INTERNAL void hak_sweep_hurry(enum hak_hurry hurry);

// Give back, now, everything that can be given back. Returns the bytes that left this process.
HAK_INTERNAL size_t hak_sweep_everything(void);
// The same for a request that was refused since `mark`. If it was the kernel that refused it, that is for addresses: it counts
// those, resident or not, so the pages of others may stay.
HAK_INTERNAL void hak_sweep_for_request(uint64_t mark);

// Once, with the first call of the process.
HAK_INTERNAL void hak_sweep_start(void);
// Around fork.
HAK_INTERNAL void hak_sweep_lock(void);
HAK_INTERNAL bool hak_sweep_lock_within(unsigned ms);
HAK_INTERNAL void hak_sweep_unlock(bool is_child);

#endif
