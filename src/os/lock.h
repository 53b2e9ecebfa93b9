// lock.h -- a small lock for slow paths.
//
// Threads   any.
// Fails     never; sleeps in the kernel when contended.
//
// Ranks, taken in this order only (a thread that holds one may take a later one;
// out of order only by hak_lock_try):
//
//   sweeper    the number of threads, and the sweeper's thread (cache/sweeper.h)
//   sweep      one sweep at a time (owner/watch.h)
//   registry   the list of caches, and the process's first call (cache/thread.c, cache/start.c)
//   cache      an owner's lock (owner/owner.h): its slabs and large blocks, its cache's magazines and outboxes
//              (several caches at once: only while forking, and by hak_lock_try; a sweep holds its own cache's lock)
//   shared     the cache of threads that have none, and of slabs without a thread (cache/cache.h)
//   shard      superslabs and their free units (slab/arena.h; several at once: in the order of their numbers, while
//              forking and for a request that is refused at a limit; in other cases by hak_lock_try)
//   arena      addresses, and what is common to all shards (slab/arena.h)
//   samples    the sampled blocks (profile/sample.c)
//   pool       memory for our own descriptors (meta/pool.c)
//   outside    the list of mappings outside the window (slab/outside.h), for a moment
//
// A thread that finds the lock held spins for a moment, then sleeps until it is woken, without a time limit. A thread
// that drops a lock with waiters wakes the one that has slept for the longest. The lock is free meanwhile, and the
// first thread that comes takes it: handed to a thread that still has to get a processor, it would keep all others
// waiting. But a thread that came too late HAK_LOCK_TRIES times draws a number. While numbers are drawn, the lock is
// handed to the thread whose turn it is. docs/decisions/0028 says what that costs.
#pragma once

#include "base/atomic.h"
#include "os/os.h"

// The word of a lock: two bits, and above them the number of threads that have drawn a number.
enum { HAK_LOCK_FREE = 0, HAK_LOCK_HELD = 1, HAK_LOCK_WAITED = 2, HAK_LOCK_ONE_DRAWN = 4 };

enum { HAK_LOCK_TRIES = 8 };

struct HAK_CAPABILITY hak_lock {
    _Atomic(uint32_t) word;
    _Atomic(uint32_t) drawn;  // numbers drawn: the next one
    _Atomic(uint32_t) served; // numbers whose turn it was. Written by the holder.
    bool is_gated;            // constant: see hak_lock_gate
    HAK_LOCK_COUNTS
};

// 1: closed. A thread that takes a gated lock then drops it again, and waits until the gate is open. Fork closes the gate, makes
// all threads pass a barrier (hak_os_barrier_all), and waits until it has seen each gated lock free. After that no thread works
// under such a lock, though one may hold it for a moment. In this way fork does not write to the locks' pages, which it would have
// to copy (cache/world.c).
HAK_INTERNAL extern _Atomic(uint32_t) hak_lock_gate;
HAK_INTERNAL void hak_lock_open_gate(void);
// Wait until nobody holds it, or give up after `ms` milliseconds or so.
HAK_INTERNAL HAK_MUST_USE bool hak_lock_await_within(const struct hak_lock *lock, unsigned ms);

HAK_INTERNAL void hak_lock_take_slow(struct hak_lock *lock) HAK_ACQUIRES(lock);
HAK_INTERNAL void hak_lock_drop_slow(struct hak_lock *lock) HAK_RELEASES(lock);
// The lock was just taken: may the thread keep it? Not if the gate is closed: then the lock is dropped.
HAK_INTERNAL HAK_MUST_USE bool hak_lock_is_kept(struct hak_lock *lock);
// Take it, or give up after `ms` milliseconds or so: for code that may have interrupted the lock's holder.
HAK_INTERNAL bool hak_lock_take_within(struct hak_lock *lock, unsigned ms) HAK_TRIES(lock);
// Does a thread sleep on it, or did one a moment ago? Called by the holder.
HAK_INLINE bool hak_lock_is_wanted(const struct hak_lock *lock)
{
    return hak_load_relaxed(&lock->word) != HAK_LOCK_HELD;
}
// Drop the lock, let a thread that sleeps on it take it, and take it again. For long work.
HAK_INTERNAL void hak_lock_pass(struct hak_lock *lock) HAK_REQUIRES(lock);

// Step try of lock.pml. Unproven: the analysis does not know that writing the word takes the lock.
HAK_INLINE bool hak_lock_try(struct hak_lock *lock) HAK_TRIES(lock) HAK_UNPROVEN
{
    uint32_t expected = HAK_LOCK_FREE;
    // pairs with: hak_lock_drop
    const bool taken = hak_cas_acquire(&lock->word, &expected, HAK_LOCK_HELD);
    if (taken) {
        HAK_LOCK_TAKEN(lock);
    }
    return taken && (HAK_LIKELY(hak_load_relaxed(&hak_lock_gate) == 0) || hak_lock_is_kept(lock));
}

HAK_INLINE void hak_lock_take(struct hak_lock *lock) HAK_ACQUIRES(lock)
{
    if (HAK_UNLIKELY(!hak_lock_try(lock))) {
        hak_lock_take_slow(lock);
        HAK_LOCK_WAITED(lock);
    }
}

// Step drop of lock.pml.
HAK_INLINE void hak_lock_drop(struct hak_lock *lock) HAK_RELEASES(lock) HAK_UNPROVEN
{
    uint32_t expected = HAK_LOCK_HELD;
    HAK_LOCK_DROPPED(lock);
    // pairs with: hak_lock_try
    if (HAK_UNLIKELY(!hak_cas_release(&lock->word, &expected, HAK_LOCK_FREE))) {
        hak_lock_drop_slow(lock);
    }
}

// Does nothing: tells the analysis of locks that the lock is held.
HAK_INLINE void hak_lock_is_held(struct hak_lock *lock) HAK_ASSERTS(lock)
{
    (void)lock;
}

// In the child of a fork: drop the lock if it is held. The threads that waited are in the parent only. Words that do not change
// are not written, because a write copies their page.
HAK_INLINE void hak_lock_drop_in_child(struct hak_lock *lock) HAK_RELEASES(lock) HAK_UNPROVEN
{
    const uint32_t drawn = hak_load_relaxed(&lock->drawn);
    if (hak_load_relaxed(&lock->word) != HAK_LOCK_FREE) {
        hak_store_relaxed(&lock->word, HAK_LOCK_FREE);
    }
    if (hak_load_relaxed(&lock->served) != drawn) {
        hak_store_relaxed(&lock->served, drawn);
    }
}
