// sweeper.h -- which thread gives free memory back, and when, without being asked.
//
// Threads   any.
//
// In a program with one thread, its frees give memory back: their slow paths purge at once what exceeds the budget (due.h),
// and every HAK_TICK_MS one of them takes a part of a pass over the caches (sweep.h), some 100 us. A process that makes no
// calls keeps what was within its budget.
// In a program with threads, a thread of ours takes the passes: the sweeper. The C library starts it, so that changes
// of credentials reach it. It starts with the first malloc of the program's second thread, sleeps while nothing waits, and is
// joined by the last thread but one when that ends. If the second thread begins with a free, the sweeper cannot start there:
// it starts with the next malloc of any thread that takes a slow path. Options that watch something all the time start it
// before the program's main.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "cache/cache.h"
#include "os/lock.h"

// 1: the sweeper is awake.
HAK_INTERNAL extern _Atomic(uint32_t) hak_sweep_runs;

// A thread of the program has got a cache, or has lost it. `may_start`: the sweeper may be started here. Not in a free, whose
// caller may hold a lock of the C library that the start of a thread takes.
HAK_INTERNAL void hak_sweeper_thread_came(bool may_start);
HAK_INTERNAL void hak_sweeper_thread_left(void);

// The process in which a start of the sweeper is owed, because a thread came in a free or maybe in a signal handler; 0: none.
HAK_INTERNAL extern _Atomic(int) hak_sweeper_owed;
// Make the start that is owed. The calling thread is in malloc, with no lock of ours.
HAK_INTERNAL HAK_COLD void hak_sweeper_start_owed(void);
HAK_INLINE void hak_sweeper_start_if_owed(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_sweeper_owed) != 0)) {
        hak_sweeper_start_owed();
    }
}

// What the sweeper does when it is woken, until nothing waits. Its thread.
HAK_INTERNAL void hak_sweeper_work(void);

// Something was freed that may have to go back. `kept_bytes`: of a block that the caller's BigCache has just taken.
HAK_INTERNAL void hak_sweeper_wanted(size_t kept_bytes);

// Wake the cache, because its thread is in a slow path. Without the lock.
HAK_INTERNAL void hak_sweeper_wake(struct hak_cache *cache);
HAK_INLINE void hak_sweeper_follow(struct hak_cache *cache)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->is_asleep))) {
        hak_sweeper_wake(cache);
    }
}

// Have the sweeper call `work` in each tick from now on, with no lock held. `has_to_stay`: the sweeper stays awake until
// the call below. For two callers at most, before the program's main, when options are known.
HAK_INTERNAL void hak_sweeper_call(void (*work)(void), bool has_to_stay);
// End that. On the sweeper's thread.
HAK_INTERNAL void hak_sweeper_call_no_more(void (*work)(void));

// Rank "sweeper", before all others. Guards the number of the program's threads, and the sweeper's thread.
HAK_INTERNAL extern struct hak_lock hak_sweeper_lock;
// After fork, in the child: its only thread is the calling one. The second is called later, with no lock held.
HAK_INTERNAL void hak_sweeper_forked_locked(void) HAK_REQUIRES(&hak_sweeper_lock);
HAK_INTERNAL void hak_sweeper_start_if_hooked(void);
