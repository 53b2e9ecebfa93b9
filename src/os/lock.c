// lock.c -- what a contended lock does.
#include "os/lock.h"

#include "os/os.h"

_Atomic(uint32_t) hak_lock_gate;

void hak_lock_open_gate(void)
{
    hak_store_relaxed(&hak_lock_gate, 0);
    hak_os_wake_numbered(&hak_lock_gate, 0); // all that wait there
}

// Step keep of gate.pml. Unproven: whether it was dropped is a value by then.
bool hak_lock_is_kept(struct hak_lock *lock) HAK_UNPROVEN
{
    if (!lock->is_gated || hak_load_relaxed(&hak_lock_gate) == 0) {
        return true;
    }
    hak_lock_drop(lock);
    return false;
}

// 200 looks are about 2 µs: longer than any of our critical sections without a system call, shorter
// than a sleep and a wake-up. Unproven: the lock is taken in one of many rounds.
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

// Take it if nobody has it; else let the word say that somebody waits, and sleep until it is another word. Who takes it
// leaves that mark too, as others may sleep. Step ask of lock.pml. Unproven, as hak_lock_try.
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

// The holder: the next number has the lock. Step hand of lock.pml.
static void serve_next(struct hak_lock *lock)
{
    const uint32_t number = hak_load_relaxed(&lock->served);
    hak_store_release(&lock->served, number + 1); // pairs with: take_in_turn
    hak_os_wake_numbered(&lock->served, number);
}

// Draw a number. Who drops the lock sees by the word that somebody has; where nobody holds it, whoever drew one sees
// to it that the first has its turn. The thread was woken before, and others may still sleep on the word: it says so.
// Step turn of lock.pml. Unproven: the lock is handed over.
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

// Step wait of lock.pml. Unproven: the lock is taken in one of some rounds.
static void take_sleeping(struct hak_lock *lock) HAK_ACQUIRES(lock) HAK_UNPROVEN
{
    for (unsigned tries = 0; tries < HAK_LOCK_TRIES; tries++) {
        if (take_or_wait(lock, 0)) {
            return;
        }
    }
    take_in_turn(lock);
}

// Unproven, as it may be dropped in between.
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

// It is seldom held, and never for long: who waits leaves no mark in it. And it does not sleep on the word, where it would be
// woken in the place of one that wants the lock. Step await of gate.pml.
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

// Who may give up draws no number: the lock would be handed to who is no longer there. And it may just have been woken, when
// another has to be. Step give_up of lock.pml. Unproven: whether it was taken is a value by then.
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

// Somebody waits, or has waited. Where the lock is handed over, who sleeps on the word is woken all the same, to sleep
// once more or to draw a number: else it would sleep as long as others draw some. Unproven, as hak_lock_drop.
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

// Without the wait, the holder would take it again before the one that it woke has run: so it waits while nobody has
// it, a millisecond at most. It takes the lock as one that has slept does: others may. Step pass of lock.pml.
void hak_lock_pass(struct hak_lock *lock)
{
    if (hak_lock_is_wanted(lock)) {
        hak_lock_drop(lock);
        hak_os_wait(&lock->word, HAK_LOCK_FREE, 1);
        take_until_kept(lock);
        HAK_LOCK_WAITED(lock);
    }
}
