// The lock of slow paths: os/lock.h, os/lock.c.
//
// Three threads take it, or two, one of which passes it on in between. Never two hold it, each sees what the one
// before wrote, and none waits for ever.
//
// variant: PASSED           two threads, and hak_lock_pass
// mutant: DROPPED_RELAXED   the next holder does not see what this one wrote
// mutant: TAKEN_RELAXED     the same, on the other side
// mutant: TWO_STEPS         two threads see it free and both take it
// mutant: NO_LIMIT          the look for waiters misses one, which then sleeps without end
#define WORD 0
#define WAITERS 1
#define DATA 2 // what the lock guards
#define PLACES 3
#define THREADS 3
#define VALUES 16
#include "memory.pml"

byte holders;
byte turns;
bool sleeps[THREADS];

inline add_waiters(more)
{
    atomic {
        swap_any(WAITERS, NEWEST(WAITERS) + more, old, false, false);
        old = 0
    }
}

// hak_os_wait: the kernel compares the newest value; at most for a millisecond. (A sleep that ends
// with the lock still held changes nothing but the count of such sleeps, and is left out.)
inline wait_while(is)
{
    atomic {
        if
        :: NEWEST(WORD) == is -> sleeps[me] = true
        :: else
        fi
    }
    if
    :: !sleeps[me]
#ifndef NO_LIMIT
    :: NEWEST(WORD) != is || is == 0 -> sleeps[me] = false
#endif
    fi
}

// hak_os_wake: one of those who sleep.
inline wake()
{
    atomic {
        if
        :: sleeps[0] -> sleeps[0] = false
        :: sleeps[1] -> sleeps[1] = false
        :: sleeps[2] -> sleeps[2] = false
        :: else
        fi
    }
}

inline take()
{
    do
    :: true -> // step try: 0 becomes 1
        expected = 0;
#ifdef TWO_STEPS
        load_acquire(WORD, expected);
        if
        :: expected == 0 -> store_relaxed(WORD, 1); break
        :: else -> NEWEST(WORD) == 0
        fi
#else
#    ifdef TAKEN_RELAXED
        cas_relaxed(WORD, expected, 1, is_mine);
#    else
        cas_acquire(WORD, expected, 1, is_mine);
#    endif
        if
        :: is_mine -> break
        :: else
        fi;
        add_waiters(1); // step wait: announced before the sleep
        wait_while(1);
        add_waiters(255)
#endif
    od;
    expected = 0;
    holders++;
    assert(holders == 1)
}

inline drop()
{
    holders--;
#ifdef DROPPED_RELAXED
    store_relaxed(WORD, 0);
#else
    store_release(WORD, 0); // step drop: a plain store, then the look for waiters
#endif
    load_relaxed(WAITERS, looked);
    if
    :: looked != 0 -> looked = 0; wake()
    :: else
    fi
}

inline work()
{
    read_plain(DATA, looked);
    write_plain(DATA, looked + 1);
    looked = 0;
    turns++;
    assert(NEWEST(DATA) == turns)
}

proctype thread(byte me)
{
    byte at, q, other, old, expected, looked;
    bool is_mine;
    take();
    work();
#ifdef PASSED
    if
    :: me == 0 -> // step pass: dropped, and not taken again before another had it
        drop();
        load_relaxed(WAITERS, looked);
        if
        :: looked != 0 -> looked = 0; wait_while(0)
        :: else
        fi;
        take();
        work()
    :: else
    fi;
#endif
    drop()
}

init {
    atomic {
        run thread(0);
        run thread(1);
#ifndef PASSED
        run thread(2)
#endif
    }
}
