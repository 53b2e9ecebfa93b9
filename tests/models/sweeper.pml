// Whether the sweeper is awake: hak_large_keep, hak_sweeper_wanted, sweeper_may_sleep (cache/large.h, cache/sweeper.c).
//
// Two threads put blocks into BigCache; a thread that finds the sweeper asleep wakes it: each waking is a process here. The sweeper
// takes the waiting blocks, and ends when it finds none. At the end no block waits without a sweeper to come for it, and there
// were never two sweepers.
//
// The compiler must keep the order of put and look in the thread that frees (hak_fence_compiler); other threads
// may see the two in any order. (If the kernel refuses the barrier, a wait of 100 ms takes
// its place: no store stays invisible for so long.)
//
// mutant: NO_BARRIER      the block that was put is visible too late
// mutant: NO_SECOND_LOOK  a block that was put after the last look waits for ever
// mutant: LOOKS_FIRST     the thread looks before it has put its block there
// mutant: ENDS_UNASKED    a sweeper continues beside the one that was started meanwhile
#define RUNS 0
#define HOT(thread) (1 + (thread))
#define PLACES 3
#define FREERS 2
#define SWEEPERS 3
#define THREADS (FREERS + SWEEPERS)
#define VALUES 12
#include "memory.pml"

#define NONE 0

byte started; // how many sweepers so far
byte at_work; // sweepers at work now

proctype sweeper(byte me)
{
    byte at, q, other, i, looked, none;
    bool is_ours, anything;
    assert(at_work == 0);
    at_work++;
    do
    :: true ->
        for (i : 0 .. FREERS - 1) {
            load_relaxed(HOT(i), looked);
            if
            :: looked != NONE -> swap_acquire(HOT(i), NONE, looked); looked = 0
            :: else
            fi
        }
        i = 0;
        at_work--;
        store_release(RUNS, 0); // step says_sleeps: first we say that we are not awake
#ifndef NO_BARRIER
        barrier_all(); // step may_sleep: both sides are in order, then the second look
#endif
        anything = false;
#ifndef NO_SECOND_LOOK
        for (i : 0 .. FREERS - 1) {
            load_relaxed(HOT(i), looked);
            if
            :: looked != NONE -> anything = true; looked = 0
            :: else
            fi
        }
        i = 0;
#endif
        if
        :: !anything -> break
        :: else
        fi;
        none = 0;
        cas_acquire(RUNS, none, 1, is_ours); // step goes_on: unless somebody has woken us
        if
#ifndef ENDS_UNASKED
        :: !is_ours -> break
#endif
        :: else -> none = 0
        fi;
        assert(at_work == 0);
        at_work++
    od
}

proctype freer(byte me)
{
    byte at, q, other, looked, none;
    bool is_ours;
#ifdef LOOKS_FIRST
    load_relaxed(RUNS, looked);
    store_release(HOT(me), 1);
#else
    store_release(HOT(me), 1); // step put_then_look: the order of these two
    load_relaxed(RUNS, looked);
#endif
    if
    :: looked == 0 ->
        cas_acquire(RUNS, none, 1, is_ours); // step wake: by one only
        if
        :: is_ours ->
            atomic {
                assert(started < SWEEPERS); // otherwise the model is too small
                for (q : 0 .. PLACES - 1) {
                    VIEW(FREERS + started, q) = VIEW(me, q);
                }
                q = 0;
                run sweeper(FREERS + started);
                started++
            }
        :: else
        fi
    :: else
    fi
}

init {
    atomic {
        run freer(0);
        run freer(1)
    }
    timeout;
    assert(NEWEST(HOT(0)) == NONE && NEWEST(HOT(1)) == NONE)
}
