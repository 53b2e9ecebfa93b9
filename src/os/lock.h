// lock.h -- a small lock for slow paths.
//
// Layer     os
// Threads   any.
// Fails     never; sleeps in the kernel when contended.
//
// Ranks, taken in this order only (a thread that holds one may take a later one;
// out of order only by hak_lock_try):
//
//   sweep      one sweep at a time (cache/sweep.c)
//   registry   the list of caches, and the process's first call (cache/thread.c, cache/start.c)
//   cache      one cache's slabs, magazines' lower ends, large blocks
//              (several caches at once: only while forking, and by hak_lock_try)
//   orphans    the cache of slabs without a thread (cache/loot.c)
//   arena      superslabs and their free units (slab/arena.c)
//   samples    the sampled blocks (cache/sample.c)
//   pool       memory for our own descriptors (meta/pool.c)
//
// Dropping it is a plain store, not an exchange that would learn of waiters: the
// owner of a cache takes its own lock on every slow path and almost never meets
// anybody, so the uncontended pair costs one atomic instruction instead of two.
// The price: the look for waiters may come before the store is seen, and miss one. So a
// waiter sleeps for a millisecond at most.
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/os.h"

struct HAK_CAPABILITY hak_lock {
    _Atomic(uint32_t) word;    // 1: held
    _Atomic(uint32_t) waiters; // threads that sleep on word
};

HAK_INTERNAL void hak_lock_take_slow(struct hak_lock *lock) HAK_ACQUIRES(lock);
// Take it, or give up after `ms` milliseconds or so: for whoever may have interrupted its holder.
HAK_INTERNAL bool hak_lock_take_within(struct hak_lock *lock, unsigned ms) HAK_TRIES(lock);
// Drop the lock, let somebody who sleeps on it have it, and take it again. For long work.
HAK_INTERNAL void hak_lock_pass(struct hak_lock *lock) HAK_REQUIRES(lock);

// Step try of lock.pml. Unproven, as what it does to the word is what makes a lock of it.
HAK_INLINE bool hak_lock_try(struct hak_lock *lock) HAK_TRIES(lock) HAK_UNPROVEN
{
    uint32_t expected = 0;
    return hak_cas_acquire(&lock->word, &expected, 1); // pairs with: hak_lock_drop
}

HAK_INLINE void hak_lock_take(struct hak_lock *lock) HAK_ACQUIRES(lock)
{
    if (HAK_UNLIKELY(!hak_lock_try(lock))) {
        hak_lock_take_slow(lock);
    }
}

// Step drop of lock.pml.
HAK_INLINE void hak_lock_drop(struct hak_lock *lock) HAK_RELEASES(lock) HAK_UNPROVEN
{
    hak_store_release(&lock->word, 0); // pairs with: hak_lock_try
    if (HAK_UNLIKELY(hak_load_relaxed(&lock->waiters) != 0)) {
        hak_os_wake(&lock->word);
    }
}

// Does nothing: for the analysis of locks, which has not seen who took it.
HAK_INLINE void hak_lock_is_held(struct hak_lock *lock) HAK_ASSERTS(lock)
{
    (void)lock;
}

// Drop it after fork, in the child: those that waited stayed with the parent.
HAK_INLINE void hak_lock_drop_in_child(struct hak_lock *lock) HAK_RELEASES(lock) HAK_UNPROVEN
{
    hak_store_relaxed(&lock->word, 0);
    hak_store_relaxed(&lock->waiters, 0);
}

#endif
