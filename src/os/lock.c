// lock.c -- the slow paths of a lock: contention, and the gate.
#include "os/lock.h"

#include "os/os.h"

_Atomic(uint32_t) hak_lock_gate;

void hak_lock_open_gate(void)
{
    hak_store_relaxed(&hak_lock_gate, 0);
    hak_os_wake_numbered(&hak_lock_gate, 0); // all threads that wait there
}

// Step keep of gate.pml. Unproven: only the result says whether the lock was dropped.
bool hak_lock_is_kept(struct hak_lock *lock) HAK_UNPROVEN
{
    if (!lock->is_gated || hak_load_relaxed(&hak_lock_gate) == 0) {
        return true;
    }
    hak_lock_drop(lock);
    return false;
}

// 200 looks are about 2 µs: longer than any of our critical sections without a system call, shorter
// than a sleep and a wake-up. Unproven: the lock is taken in one of many rounds of a loop.
static bool try_for_a_moment(struct hak_lock *lock) HAK_TRIES(lock) HAK_UNPROVEN
{
    for (unsigned look = 0; look < 200; look++) {
        if (hak_load_relaxed(&lock->word) == HAK_LOCK_FREE && hak_lock_try(lock)) {
            return true;
        }
        HAK_SPIN_HINT();
    }
    return false;
}

// Take the lock if it is free. If not, mark it as waited for, and sleep until the word changes. A thread that takes the lock here
// marks it, too, because others may sleep. Step ask of lock.pml. Unproven, as hak_lock_try.
static bool take_or_wait(struct hak_lock *lock, unsigned ms) HAK_TRIES(lock) HAK_UNPROVEN
{
    uint32_t seen = hak_load_relaxed(&lock->word);
    const uint32_t marked = seen | HAK_LOCK_HELD | HAK_LOCK_WAITED;
    // pairs with: hak_lock_drop
    if (seen != marked && !hak_cas_acquire(&lock->word, &seen, marked)) {
        return false;
    }
    if ((seen & HAK_LOCK_HELD) != 0) {
        hak_os_wait(&lock->word, marked, ms);
        return false;
    }
    return true;
}

// Called by the holder: hand the lock to the next number. Step hand of lock.pml.
static void serve_next(struct hak_lock *lock)
{
    const uint32_t number = hak_load_relaxed(&lock->served);
    hak_store_release(&lock->served, number + 1); // pairs with: take_in_turn
    hak_os_wake_numbered(&lock->served, number);
}

// Draw a number, and wait for its turn. The word tells the thread that drops the lock that numbers are drawn. If the lock is free,
// a thread with a number takes it, and serves the first number. This thread was woken, and others may still sleep on the word, so
// it is marked again. Step turn of lock.pml. Unproven: the lock is handed over.
static void take_in_turn(struct hak_lock *lock) HAK_ACQUIRES(lock) HAK_UNPROVEN
{
    hak_or_relaxed(&lock->word, HAK_LOCK_WAITED);
    const uint32_t number = hak_add_relaxed(&lock->drawn, 1);
    hak_add_relaxed(&lock->word, HAK_LOCK_ONE_DRAWN);
    uint32_t served;
    // pairs with: serve_next
    while ((int32_t)((served = hak_load_acquire(&lock->served)) - number) <= 0) {
        uint32_t seen = hak_load_relaxed(&lock->word);
        if ((seen & HAK_LOCK_HELD) != 0) {
            hak_os_wait_numbered(&lock->served, served, number);
        } else if (hak_cas_acquire(
                       &lock->word, &seen, seen | HAK_LOCK_HELD)) { // pairs with: hak_lock_drop
            serve_next(lock);
        }
    }
    hak_sub_relaxed(&lock->word, HAK_LOCK_ONE_DRAWN);
}

// Step wait of lock.pml. Unproven: the lock is taken in one of several rounds of a loop.
static void take_sleeping(struct hak_lock *lock) HAK_ACQUIRES(lock) HAK_UNPROVEN
{
    for (unsigned tries = 0; tries < HAK_LOCK_TRIES; tries++) {
        if (take_or_wait(lock, 0)) {
            return;
        }
    }
    take_in_turn(lock);
}

// Unproven, because the lock may be dropped in between.
static void take_until_kept(struct hak_lock *lock) HAK_ACQUIRES(lock) HAK_UNPROVEN
{
    take_sleeping(lock);
    while (!hak_lock_is_kept(lock)) {
        hak_os_wait_numbered(&hak_lock_gate, 1, 0);
        take_sleeping(lock);
    }
}

void hak_lock_take_slow(struct hak_lock *lock)
{
    if (!try_for_a_moment(lock)) {
        take_until_kept(lock);
    }
}

// The lock is seldom held, and never for long, so a thread that waits here does not mark it. Nor does it sleep on the word, where
// it would be woken in place of a thread that wants the lock. Step await of gate.pml.
bool hak_lock_await_within(const struct hak_lock *lock, unsigned ms)
{
    static _Atomic(uint32_t) never_woken;
    unsigned looks = 0;
    // pairs with: hak_lock_drop
    while ((hak_load_acquire(&lock->word) & HAK_LOCK_HELD) != 0) {
        if (looks++ < 200) {
            HAK_SPIN_HINT();
        } else if (ms-- > 0) {
            hak_os_wait(&never_woken, 0, 1);
        } else {
            return false;
        }
    }
    return true;
}

// A thread that may give up draws no number: the lock could be handed to it after it has left. When it gives up, it may just have
// been woken, so it wakes another thread. Step give_up of lock.pml. Unproven: only the result says whether the lock was taken.
bool hak_lock_take_within(struct hak_lock *lock, unsigned ms) HAK_UNPROVEN
{
    bool taken = try_for_a_moment(lock);
    for (; !taken && ms > 0; ms--) {
        taken = take_or_wait(lock, 1) && hak_lock_is_kept(lock);
    }
    if (!taken) {
        hak_os_wake(&lock->word);
    }
    return taken;
}

// A thread waits, or has waited. Even if the lock is handed over, a thread that sleeps on the word is woken, to sleep once more or
// to draw a number; if not, it would sleep for as long as others draw numbers. Unproven, as hak_lock_drop.
void hak_lock_drop_slow(struct hak_lock *lock) HAK_UNPROVEN
{
    uint32_t seen = hak_load_relaxed(&lock->word);
    do {
        if (seen >= HAK_LOCK_ONE_DRAWN) {
            serve_next(lock);
            break;
        }
    } while (!hak_cas_release(&lock->word, &seen, HAK_LOCK_FREE)); // pairs with: hak_lock_try
    hak_os_wake(&lock->word);
}

// Without the wait, the holder would take the lock again before the thread that it woke has run. So it waits while the lock is
// free, a millisecond at most. It takes the lock as if it had slept, because others may sleep. Step pass of lock.pml.
void hak_lock_pass(struct hak_lock *lock)
{
    if (hak_lock_is_wanted(lock)) {
        hak_lock_drop(lock);
        hak_os_wait(&lock->word, HAK_LOCK_FREE, 1);
        take_until_kept(lock);
        HAK_LOCK_WAITED(lock);
    }
}
