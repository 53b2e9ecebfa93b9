// sweeper.h -- who gives free memory back when, without being asked.
//
// Threads   any.
//
// In a program with one thread whoever frees: in the slow paths of free what is over the budget goes back at once (due.h),
// and each HAK_TICK_MS one of them takes a part of a pass over the caches (sweep.h), some 100 us. A process that makes no
// calls keeps what was within its budget.
// A program with threads has one of ours beside its own, the sweeper, which takes the passes. It is a thread of the C
// library's, so that changes of credentials reach it. It starts with the first malloc of the program's second thread, is
// asleep while nothing waits, and is joined by the last thread but one when that ends. A second thread that begins with a free
// may not start it: then it starts with the next malloc, of whichever thread, that comes to a slow path. Options that watch
// something all the time start it before the program's main.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "cache/cache.h"
#include "os/lock.h"

// 1: the sweeper is awake.
HAK_INTERNAL extern _Atomic(uint32_t) hak_sweep_runs;

// A thread of the program's has got a cache, or has lost it. `may_start`: no lock of the C library's is held that it takes
// to start a thread, as one may be in a free.
HAK_INTERNAL void hak_sweeper_thread_came(bool may_start);
HAK_INTERNAL void hak_sweeper_thread_left(void);

// The process whose thread has come in a free, or maybe in a signal's handler, when there was no sweeper, or 0.
HAK_INTERNAL extern _Atomic(int) hak_sweeper_owed;
// The calling thread is in malloc, with no lock of ours.
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

// The thread of the cache does something in a slow path, without the lock.
HAK_INTERNAL void hak_sweeper_wake(struct hak_cache *cache);
HAK_INLINE void hak_sweeper_follow(struct hak_cache *cache)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->is_asleep))) {
        hak_sweeper_wake(cache);
    }
}

// Call `work` in each tick of the sweeper's from now on, with no lock held. `has_to_stay`: it is then awake until the call
// below. Before the program's main, when options are known, by two at most.
HAK_INTERNAL void hak_sweeper_call(void (*work)(void), bool has_to_stay);
// Not any more: from the sweeper's thread.
HAK_INTERNAL void hak_sweeper_call_no_more(void (*work)(void));

// Rank "sweeper", before all others: how many threads the program has, and the sweeper's thread.
HAK_INTERNAL extern struct hak_lock hak_sweeper_lock;
// After fork, in the child: the threads stayed with the parent. And then, with no lock held.
HAK_INTERNAL void hak_sweeper_forked_locked(void) HAK_REQUIRES(&hak_sweeper_lock);
HAK_INTERNAL void hak_sweeper_start_if_hooked(void);
