// lock.c -- what a contended lock does.
#include "os/lock.h"

#include "os/os.h"

void hak_lock_take_slow(struct hak_lock *lock)
{
    for (;;) {
        // 200 looks are about 2 µs: longer than any of our critical sections
        // without a system call, shorter than a sleep and a wake-up.
        for (unsigned look = 0; look < 200; look++) {
            if (hak_load_relaxed(&lock->word) == 0 && hak_lock_try(lock)) {
                return;
            }
            HAK_SPIN_HINT();
        }
        hak_add_relaxed(&lock->waiters, 1);
        hak_os_wait(&lock->word, 1, 1);
        hak_sub_relaxed(&lock->waiters, 1);
    }
}

// Without the wait, the holder would take it again before the one that it woke has run.
void hak_lock_pass(struct hak_lock *lock)
{
    hak_lock_drop(lock);
    if (hak_load_relaxed(&lock->waiters) != 0) {
        hak_os_wait(&lock->word, 0, 1);
    }
    hak_lock_take(lock);
}
