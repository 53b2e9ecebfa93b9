// The gate that fork closes before it looks whether a lock is free: os/lock.h, os/lock.c, cache/world.c.
//
// One thread forks while two take the lock and change what it guards, twice. Nobody is in the middle of a change
// while the kernel copies the process, though somebody may hold the lock; all that was changed before is seen; and nobody
// waits for ever. (What else the lock does is lock.pml's.)
//
// mutant: UNCHECKED      who takes the lock does not look whether it is to be kept
// mutant: NO_BARRIER     a thread has looked before the gate was closed, and its lock is not seen yet
// mutant: LOOKED_BEFORE  who takes the lock has looked before, and not since
// mutant: READ_RELAXED   who forks does not see what the last holder has written
#define GATE 0
#define WORD 1
#define DATA 2 // what the lock guards
#define PLACES 3
#define THREADS 3
#define VALUES 14
#include "memory.pml"

#define ROUNDS 2

byte changing;
bool is_copying;

proctype forker()
{
    byte me = 0, at, q, other, seen;
    store_relaxed(GATE, 1); // step close
#ifndef NO_BARRIER
    barrier_all();
#endif
    do // step await
#ifdef READ_RELAXED
    :: load_relaxed(WORD, seen);
#else
    :: load_acquire(WORD, seen);
#endif
        if
        :: seen == 0 -> break
        :: else
        fi
    od;
    is_copying = true;
    assert(changing == 0);
    read_plain(DATA, seen);
    is_copying = false;
    store_relaxed(GATE, 0)
}

inline drop()
{
    store_release(WORD, 0)
}

proctype taker(byte me)
{
    byte at, q, other, round, seen, expected;
    bool is_mine;
    for (round : 1 .. ROUNDS) {
        do
        :: true ->
#ifdef LOOKED_BEFORE
            load_relaxed(GATE, seen);
#endif
            do
            :: NEWEST(WORD) == 0 ->
                expected = 0;
                cas_acquire(WORD, expected, 1, is_mine);
                if
                :: is_mine -> break
                :: else
                fi
            od;
            is_mine = false;
            expected = 0;
#if !defined(LOOKED_BEFORE) && !defined(UNCHECKED)
            load_relaxed(GATE, seen); // step keep
#endif
            if
            :: seen == 0 -> break
            :: else ->
                drop();
                atomic { NEWEST(GATE) == 0 -> VIEW(me, GATE) = count[GATE] }; // hak_os_wait_numbered
                seen = 0
            fi
        od;
        changing++;
        assert(!is_copying);
        read_plain(DATA, seen);
        write_plain(DATA, seen + 1);
        changing--;
        seen = 0;
        drop()
    }
}

init {
    atomic {
        run forker();
        run taker(1);
        run taker(2)
    }
}
