// due.h -- how much free memory may wait, and for how long.
//
// Threads   any, but where a lock is named.
// Fails     never; what the kernel does not take waits, and is tried again after a pause that doubles.
//
// A budget in bytes may wait: what is over it goes back at once, by whoever frees, for nobody else may ever come. Within
// the budget free pages wait for the decay time. docs/decisions/0033 has what that costs.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/options.h"

#define HAK_TICK_MS 100

// Is there a thread of ours that gives back (sweeper.h)? It writes the first.
HAK_INTERNAL extern _Atomic(bool) hak_due_has_sweeper_thread;
HAK_INLINE bool hak_due_has_sweeper(void)
{
    return hak_load_relaxed(&hak_due_has_sweeper_thread) &&
           hak_load_relaxed(&hak_options.purger) != 0;
}

// What goes back before its decay time is over. Each includes those before it: what is least likely to be used again soon is
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

// How many bytes a program with one thread may keep besides, for what it lately took again. Any thread.
HAK_INTERNAL size_t hak_due_earned(void);
// Does the program take less than 64 MiB a second of what was given back? Then giving back costs it little. Any thread.
HAK_INTERNAL bool hak_due_takes_little_again(void);
// Slabs are in use again that had given back so much inside. (What is free as a whole the arena counts by itself.)
HAK_INTERNAL void hak_due_note_again(size_t bytes);

// In the child of a fork, whose parent had other threads: one of them may have been at it.
HAK_INTERNAL void hak_due_forked(void);

// How many bytes may wait inside slabs: as many as in free units. Only what was earned (hak_due_earned) is shared by both.
HAK_INTERNAL size_t hak_due_budget_inside(void);

// How long caches keep large blocks, `kept_bytes` together: not at all while these and what waits in the arena exceed
// the budget.
HAK_INTERNAL uint64_t hak_due_kept_ticks(size_t kept_bytes);

// Dirty bytes that wait to be given back.
HAK_INTERNAL size_t hak_due_waiting(void);

// Give back at once what exceeds the budget, of which large blocks that the caller's cache keeps take `kept_bytes`.
HAK_INTERNAL void hak_due_lower(size_t kept_bytes);

// In a tick: give back what has waited for long enough, and what exceeds the budget, `most` bytes of each. Returns the
// bytes. The holder of the right to tick (sweeper.c).
HAK_INTERNAL size_t hak_due_purge(size_t most);
