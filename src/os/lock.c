// lock.c -- what a contended lock does.
#include "os/lock.h"

#include "os/os.h"

// 200 looks are about 2 µs: longer than any of our critical sections without a system call, shorter
// than a sleep and a wake-up. Unproven: the lock is taken in one of many rounds.
static bool try_for_a_moment(struct hak_lock *lock) HAK_TRIES(lock) HAK_UNPROVEN
{
    for (unsigned look = 0; look < 200; look++) {
        if (hak_load_relaxed(&lock->word) == 0 && hak_lock_try(lock)) {
            return true;
        }
        HAK_SPIN_HINT();
    }
    return false;
}

// A millisecond at most. Step wait of lock.pml.
static void wait_for_drop(struct hak_lock *lock)
{
    hak_add_relaxed(&lock->waiters, 1);
    hak_os_wait(&lock->word, 1, 1);
    hak_sub_relaxed(&lock->waiters, 1);
}

void hak_lock_take_slow(struct hak_lock *lock)
{
    while (!try_for_a_moment(lock)) {
        wait_for_drop(lock);
    }
}

// Unproven: whether it was taken is a value by then.
bool hak_lock_take_within(struct hak_lock *lock, unsigned ms) HAK_UNPROVEN
{
    bool taken;
    while (!(taken = try_for_a_moment(lock)) && ms-- > 0) {
        wait_for_drop(lock);
    }
    return taken;
}

// Without the wait, the holder would take it again before the one that it woke has run. Step pass of
// lock.pml.
void hak_lock_pass(struct hak_lock *lock)
{
    hak_lock_drop(lock);
    if (hak_load_relaxed(&lock->waiters) != 0) {
        hak_os_wait(&lock->word, 0, 1);
    }
    hak_lock_take(lock);
}
