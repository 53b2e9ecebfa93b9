// The lock of slow paths: os/lock.h, os/lock.c.
//
// Three threads take it, or two, one of which passes it on in between. At most one holds it, each sees what the last
// holder wrote, and none sleeps for ever. (fair_lock.pml checks that each also gets it in time.)
//
// variant: PASSED           two threads, and hak_lock_pass
// variant: GIVEN_UP         one of the three waits for a moment only, hak_lock_take_within
// mutant: DROPPED_RELAXED   the next holder does not see what the last one wrote
// mutant: TAKEN_RELAXED     the same on the other side
// mutant: TWO_STEPS         two threads see it free and both take it
// mutant: NO_MARK           a thread sleeps on a lock that does not show it: nobody wakes the thread
// mutant: TAKEN_UNMARKED    a thread that was woken takes the lock as if no other thread slept
// mutant: TURN_UNMARKED     the same for a thread that draws a number
// mutant: DRAWN_UNSEEN      the word does not show that a number was drawn
// mutant: HANDED_RELAXED    the thread whose turn it is does not see what the last holder wrote
// mutant: WAKE_KEPT         a thread that gives up was woken, and wakes no other one in its place
// mutant: STAYS_DRAWN       a thread that has had its turn still counts: the lock is handed to nobody
#define WORD 0
#define DRAWN 1
#define SERVED 2
#define DATA 3 // what the lock guards
#define PLACES 4
#define THREADS 3
#define VALUES 20
#include "memory.pml"

#ifdef WAKE_KEPT
#    define GIVEN_UP
#endif
#define FREE 0
#define HELD 1
#define WAITED 2
#define ONE_DRAWN 4
#ifdef TAKEN_UNMARKED
#    define TRIES 2
#else
#    define TRIES 1
#endif
#define AWAKE 255

byte holders;
byte turns;
byte sleeps_on[THREADS] = AWAKE; // on which place

inline add(p, more, before)
{
    atomic {
        before = NEWEST(p);
        other = before + more;
        swap_any(p, other, old, false, false);
        old = 0;
        other = 0
    }
}

// hak_os_wait: the kernel compares the newest value. (A time limit makes no difference if the thread tries again.)
inline wait_while(p, is)
{
    atomic {
        if
        :: NEWEST(p) == is -> sleeps_on[me] = p
        :: else
        fi
    }
    sleeps_on[me] == AWAKE
}

// The same with a time limit, which may end at any moment.
inline wait_a_moment(p, is)
{
    atomic {
        if
        :: NEWEST(p) == is -> sleeps_on[me] = p
        :: else
        fi
    }
    if
    :: sleeps_on[me] == AWAKE
    :: true -> sleeps_on[me] = AWAKE // its time is up
    fi
}

// hak_os_wake: wakes any one of the sleeping threads. hak_os_wake_numbered: wakes all; all but one find that another was meant.
inline wake_one(p)
{
    atomic {
        if
        :: sleeps_on[0] == p -> sleeps_on[0] = AWAKE
        :: sleeps_on[1] == p -> sleeps_on[1] = AWAKE
        :: sleeps_on[2] == p -> sleeps_on[2] = AWAKE
        :: else
        fi
    }
}

inline wake_all(p)
{
    d_step {
        for (q : 0 .. THREADS - 1) {
            if
            :: sleeps_on[q] == p -> sleeps_on[q] = AWAKE
            :: else
            fi
        }
        q = 0
    }
}

inline cas_word(from, to)
{
    expected = from;
#ifdef TAKEN_RELAXED
    cas_relaxed(WORD, expected, to, is_mine);
#else
    cas_acquire(WORD, expected, to, is_mine);
#endif
    expected = 0
}

inline serve_next() // step hand
{
    load_relaxed(SERVED, served);
    served++;
#ifdef HANDED_RELAXED
    store_relaxed(SERVED, served);
#else
    store_release(SERVED, served);
#endif
    served = 0;
    wake_all(SERVED)
}

inline take_in_turn() // step turn
{
#ifndef TURN_UNMARKED
    atomic {
        other = NEWEST(WORD) | WAITED;
        swap_any(WORD, other, old, false, false);
        old = 0;
        other = 0
    }
#endif
    add(DRAWN, 1, number);
#ifndef DRAWN_UNSEEN
    add(WORD, ONE_DRAWN, seen);
#endif
    do
    :: load_acquire(SERVED, served);
        if
        :: served > number -> break
        :: else ->
            load_relaxed(WORD, seen);
            if
            :: (seen & HELD) != 0 -> wait_while(SERVED, served)
            :: else ->
                cas_word(seen, seen | HELD);
                if
                :: is_mine -> serve_next()
                :: else
                fi
            fi
        fi
    od;
    served = 0;
    number = 0;
#if !defined(STAYS_DRAWN) && !defined(DRAWN_UNSEEN)
    add(WORD, 256 - ONE_DRAWN, seen)
#endif
}

inline take_sleeping() // step wait
{
    rounds = 0;
    do
    :: rounds == TRIES -> take_in_turn(); break
    :: else -> // step ask
        rounds++;
        load_relaxed(WORD, seen);
        if
        :: (seen & (HELD | WAITED)) == (HELD | WAITED) -> wait_while(WORD, seen)
#ifdef NO_MARK
        :: seen == HELD -> wait_while(WORD, seen)
        :: seen != HELD && (seen & (HELD | WAITED)) != (HELD | WAITED) ->
#else
        :: else ->
#endif
#ifdef TAKEN_UNMARKED
            if
            :: (seen & HELD) != 0 -> cas_word(seen, seen | WAITED)
            :: else -> cas_word(seen, seen | HELD)
            fi;
#else
            cas_word(seen, seen | HELD | WAITED);
#endif
            if
            :: is_mine && (seen & HELD) == 0 -> break
            :: is_mine && (seen & HELD) != 0 -> wait_while(WORD, (seen | WAITED))
            :: else
            fi
        fi
    od;
    rounds = 0
}

inline take()
{
#ifdef TWO_STEPS
    do
    :: load_acquire(WORD, seen);
        if
        :: seen == FREE -> store_relaxed(WORD, HELD); break
        :: else -> NEWEST(WORD) == FREE
        fi
    od;
#else
    cas_word(FREE, HELD); // step try
    if
    :: !is_mine -> take_sleeping()
    :: else
    fi;
#endif
    seen = 0;
    is_mine = false;
    holders++;
    assert(holders == 1)
}

// The thread asks once, and sleeps until it is woken or its time is up.
inline take_within(has_it)
{
    cas_word(FREE, HELD); // step try
    has_it = is_mine;
    if
    :: !is_mine ->
        load_relaxed(WORD, seen);
        if
        :: (seen & (HELD | WAITED)) == (HELD | WAITED) -> is_mine = true
        :: else -> cas_word(seen, seen | HELD | WAITED)
        fi;
        if
        :: is_mine && (seen & HELD) == 0 -> has_it = true
        :: is_mine && (seen & HELD) != 0 -> wait_a_moment(WORD, (seen | WAITED))
        :: else
        fi
    :: else
    fi;
#ifndef WAKE_KEPT
    if
    :: !has_it -> wake_one(WORD) // step give_up
    :: else
    fi;
#endif
    seen = 0;
    is_mine = false
}

inline drop()
{
    holders--;
    expected = HELD;
#ifdef DROPPED_RELAXED
    cas_relaxed(WORD, expected, FREE, is_mine); // step drop
#else
    cas_release(WORD, expected, FREE, is_mine); // step drop
#endif
    expected = 0;
    if
    :: !is_mine ->
        do
        :: load_relaxed(WORD, seen);
            if
            :: seen >= ONE_DRAWN -> serve_next(); wake_one(WORD); break
            :: else ->
                expected = seen;
                cas_release(WORD, expected, FREE, is_mine);
                expected = 0;
                if
                :: is_mine -> wake_one(WORD); break
                :: else
                fi
            fi
        od
    :: else
    fi;
    seen = 0;
    is_mine = false
}

inline work()
{
    read_plain(DATA, seen);
    write_plain(DATA, seen + 1);
    seen = 0;
    turns++;
    assert(NEWEST(DATA) == turns)
}

proctype thread(byte me)
{
    byte at, q, other, old, expected, seen, rounds, number, served;
    bool is_mine;
#ifdef GIVEN_UP
    bool has_it;
    if
    :: me == 0 ->
        take_within(has_it);
        if
        :: has_it -> holders++; assert(holders == 1)
        :: else -> goto over
        fi
    :: else -> take()
    fi;
#else
    take();
#endif
    work();
#ifdef PASSED
    if
    :: me == 0 -> // step pass: dropped, and not taken again at once
        load_relaxed(WORD, seen);
        if
        :: seen != HELD ->
            drop();
            wait_a_moment(WORD, FREE);
            take_sleeping();
            seen = 0;
            is_mine = false;
            holders++;
            assert(holders == 1);
            work()
        :: else
        fi;
        seen = 0
    :: else
    fi;
#endif
    drop();
over:
    skip
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
