// The gate that fork closes before it checks whether a lock is free: os/lock.h, os/lock.c, cache/world.c.
//
// One thread forks while two take the lock and change what it guards, twice, and one asks for statistics: it takes all locks,
// the first ones first, as fork does, and may give up waiting for each. No thread is in the middle of a change
// while the kernel copies the process, though one may hold the lock; every earlier change is visible; and no thread
// waits for ever. (lock.pml checks the rest of the lock.)
//
// mutant: UNCHECKED      a thread that takes the lock does not check whether it may keep it
// mutant: NO_BARRIER     a thread has checked before the gate was closed, and its lock is not visible yet
// mutant: LOOKED_BEFORE  a thread that takes the lock has checked before, and not since
// mutant: READ_RELAXED   the thread that forks does not see what the last holder has written
// mutant: OPENS_BLINDLY  a thread that gives up without the first locks opens the gate, which another one has closed
// mutant: LEFT_CLOSED    the thread that forks releases the first locks before it opens the gate
#define GATE 0
#define WORD 1
#define DATA 2 // what the lock guards
#define OURS 3 // caches_are_free: the holder of the first locks, which guard it, has closed the gate
#define PLACES 4
#define THREADS 4
#define VALUES 18
#define LOCKS 1
#define FIRST 0 // stands for the three locks that are taken first
#include "memory.pml"

#define ROUNDS 2

byte changing;
bool is_copying;

inline open_gate() // step open
{
    read_plain(OURS, seen);
    if
    :: seen != 0 ->
        store_relaxed(GATE, 0);
        write_plain(OURS, 0)
    :: else
    fi;
    seen = 0
}

proctype forker()
{
    byte me = 0, at, q, other, seen;
    lock_take(FIRST);
    store_relaxed(GATE, 1); // step close
#ifndef NO_BARRIER
    barrier_all();
#endif
    write_plain(OURS, 1);
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
#ifdef LEFT_CLOSED
    lock_drop(FIRST);
    open_gate()
#else
    open_gate();
    lock_drop(FIRST)
#endif
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

// The time may be up at each of its waits.
proctype asker()
{
    byte me = 3, at, q, seen, expected;
    bool has_first, is_mine;
    if
    :: lock_take(FIRST); has_first = true
    :: has_first = false
    fi;
    if
    :: has_first ->
        if
        :: NEWEST(WORD) == 0 -> cas_acquire(WORD, expected, 1, is_mine)
        :: is_mine = false
        fi;
        expected = 0;
        if
        :: is_mine ->
            load_relaxed(GATE, seen); // step keep
            assert(seen == 0); // no other thread can have closed it
            read_plain(DATA, seen);
            seen = 0;
            drop()
        :: else
        fi;
        open_gate();
        lock_drop(FIRST)
    :: else // step give_up
#ifdef OPENS_BLINDLY
        load_relaxed(OURS, seen);
        if
        :: seen != 0 -> store_relaxed(GATE, 0)
        :: else
        fi
#endif
    fi
}

init {
    atomic {
        run forker();
        run taker(1);
        run taker(2);
        run asker()
    }
}
