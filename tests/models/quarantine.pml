// Emptying the stocks and the quarantine of a thread that sleeps: secure/hardened.h, secure/hardened.c.
//
// An owner works on its stocks and quarantine without a lock, as often as it likes, and with the lock when it finds
// them taken; another thread takes them away twice. They are not atomic: each thread sees all that was done
// before, and the two are never at work at the same time.
//
// mutant: NO_BARRIER     the owner does not see that they were taken, nor the other thread that the owner is inside
// mutant: NO_LOOK        the owner was inside already
// mutant: LEAVE_RELAXED  the thread that finds the owner outside does not see all that it did
// mutant: BACK_RELAXED   nor does the owner see all that the other thread did
#ifndef CALLS
#    define CALLS 3
#endif
#define INSIDE 0
#define TAKEN  1 // 0: they are where the owner looks for them
#define HELD   2
#define PLACES 3
#define THREADS 2
#define VALUES 16
#define LOCKS 1
#include "memory.pml"

#define OWNER 0
#define SWEEPER 1

byte working;

inline work()
{
    working++;
    assert(working == 1);
    write_plain(HELD, 1);
    working--
}

inline leave()
{
#ifdef LEAVE_RELAXED
    store_relaxed(INSIDE, 0)
#else
    store_release(INSIDE, 0) // step leave
#endif
}

proctype owner()
{
    byte me = OWNER, at, q, other, taken, left_to_do = CALLS;
    do
    :: left_to_do == 0 -> break
    :: left_to_do > 0 ->
        left_to_do--;
        store_relaxed(INSIDE, 1); // step enter
        load_acquire(TAKEN, taken);
        if
        :: taken == 0 ->
            work();
            leave()
        :: else ->
            leave();
            lock_take(0);
            work();
            lock_drop(0)
        fi
    od
}

proctype sweeper()
{
    byte me = SWEEPER, at, q, other, inside, left_to_do = 2;
    do
    :: left_to_do == 0 -> break
    :: left_to_do > 0 ->
        left_to_do--;
        lock_take(0);
        store_relaxed(TAKEN, 1); // step take
#ifndef NO_BARRIER
        barrier_all();
#endif
        load_acquire(INSIDE, inside); // step look
        if
#ifdef NO_LOOK
        :: true -> work()
#else
        :: inside == 0 -> work()
        :: else
#endif
        fi;
#ifdef BACK_RELAXED
        store_relaxed(TAKEN, 0);
#else
        store_release(TAKEN, 0); // step put_back
#endif
        lock_drop(0)
    od
}

init {
    atomic {
        run owner();
        run sweeper()
    }
}
