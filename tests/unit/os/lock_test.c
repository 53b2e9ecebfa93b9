// A thread that gives up waiting for a lock causes no lost wake-up. (Two threads: lock.pml.)
#include "os/lock.h"

#include "../unit.h"

static struct hak_lock lock;

// Else it would be woken in place of a thread that wants the lock and sleeps on its word.
static void who_awaits_sleeps_elsewhere(void)
{
    hak_lock_take(&lock);
    UNIT_CHECK(!hak_lock_await_within(&lock, 3));
    UNIT_CHECK(hak_fake.waited_on != NULL && hak_fake.waited_on != (const void *)&lock.word);
    hak_lock_drop(&lock);
    UNIT_CHECK(hak_lock_await_within(&lock, 0));
}

static void who_gives_up_wakes_another(void)
{
    hak_lock_take(&lock);
    const size_t wakes = hak_fake.wakes;
    UNIT_CHECK(!hak_lock_take_within(&lock, 3));
    UNIT_EQUAL(hak_fake.wakes, wakes + 1);
    hak_lock_drop(&lock);
    UNIT_CHECK(hak_lock_take_within(&lock, 3));
    hak_lock_drop(&lock);
}

int main(void)
{
    who_awaits_sleeps_elsewhere();
    who_gives_up_wakes_another();
    return 0;
}
