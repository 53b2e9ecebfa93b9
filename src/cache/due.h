// due.h -- how much free memory may wait to be purged, and for how long.
//
// Threads   any, except where a lock is named.
// Fails     never; what the kernel refuses to purge waits, and is tried again after a pause that doubles.
//
// The thread that frees purges at once what exceeds the budget, because no other thread may ever come by. Within
// the budget, free pages wait for the decay time. docs/decisions/0033 has what that costs.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"

#define HAK_TICK_MS 100

// Is there a sweeper? sweeper.c writes the variable.
HAK_INTERNAL extern _Atomic(bool) hak_due_has_sweeper_thread;
HAK_INLINE bool hak_due_has_sweeper(void)
{
    return hak_load_relaxed(&hak_due_has_sweeper_thread) &&
           hak_load_relaxed(&hak_options.purger) != 0;
}

// What goes back before its decay time is over. Each includes those before it; what is least likely to be reused soon comes
// first.
enum hak_urgency {
    HAK_URGENCY_NONE,
    HAK_URGENCY_FREE, // pages of free units: they wait for a tick
    HAK_URGENCY_KEPT, // and large blocks that caches keep
    HAK_URGENCY_IDLE, // and what caches and classes hold that were not used for a tick
};
HAK_INTERNAL void hak_due_urge(enum hak_urgency urgency);
HAK_INTERNAL bool hak_due_is_urgent(enum hak_urgency what);

HAK_INTERNAL uint64_t hak_due_decay_ticks(void);

// The extra budget that a program with one thread has earned by retaking purged memory. Any thread.
HAK_INTERNAL size_t hak_due_earned(void);
// Does the program retake less than 64 MiB of purged memory a second? Then purging costs it little. Any thread.
HAK_INTERNAL bool hak_due_takes_little_again(void);
// A slab inside which `bytes` were purged is in use again. (The arena counts retaken units itself.)
HAK_INTERNAL void hak_due_note_again(size_t bytes);

// In the child of a fork: count retaken bytes anew, because another thread of the parent may have been changing the counts.
HAK_INTERNAL void hak_due_forked(void);

// How many free bytes may wait inside slabs: as many as in free units. Both share only the earned budget (hak_due_earned).
HAK_INTERNAL size_t hak_due_budget_inside(void);

// For how many ticks caches may keep large blocks, `kept_bytes` in all: none while these and the arena's dirty bytes exceed
// the budget.
HAK_INTERNAL uint64_t hak_due_kept_ticks(size_t kept_bytes);

// Dirty bytes that wait to be purged.
HAK_INTERNAL size_t hak_due_waiting(void);

// Purge at once what exceeds the budget. Large blocks that the caller's cache keeps use `kept_bytes` of it.
HAK_INTERNAL void hak_due_lower(size_t kept_bytes);

// In a tick: purge what has waited for long enough, and what exceeds the budget, `most` bytes of each. Returns the
// bytes. The holder of the right to tick (sweeper.c).
HAK_INTERNAL size_t hak_due_purge(size_t most);
