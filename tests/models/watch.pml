// Which caches the sweeper watches: hak_watch_note, unwatch, unwatch_judge (owner/watch.h, owner/watch.c, cache/sweep.c).
//
// Two threads put something into a cache and have it watched again if it is not. The sweeper takes the content and then
// stops watching the cache. At the end nothing is left in the cache, and it was never watched twice.
//
// The compiler must keep the order of put and look (hak_fence_compiler); other threads may see the two in any
// order, and the sweeper's barrier is between them.
//
// mutant: NO_BARRIER     what was put is visible too late
// mutant: NOT_JUDGED     what was put after the last look waits for ever
// mutant: LOOKS_FIRST    the thread looks before it has put
// mutant: UNWATCHED_RELAXED  a thread that notes the cache writes a link that the sweeper still uses
// mutant: NOTED_BLINDLY  two threads have the cache watched, and it is in the list twice
#define WATCHED 0
#define NOTED 1 // it is among the caches to be watched
#define INBOX(thread) (2 + (thread))
#define SENDERS 2
#define NEXT (2 + SENDERS)
#define PLACES (3 + SENDERS)
#define SWEEPER SENDERS
#define THREADS (SENDERS + 1)
#define VALUES 24
#include "memory.pml"

byte in_lists = 1; // how often the sweeper has it, or will find it noted

inline note()
{
    load_relaxed(WATCHED, looked);
    if
    :: looked == 0 ->
#ifdef NOTED_BLINDLY
        store_relaxed(WATCHED, 1);
        is_mine = true;
#else
        none = 0;
        cas_acquire(WATCHED, none, 1, is_mine);
        none = 0;
#endif
        if
        :: is_mine -> // step note: by one only
            in_lists++;
            assert(in_lists == 1);
            write_plain(NEXT, me + 1); // the link in the sweeper's list
            store_release(NOTED, 1);
            is_mine = false
        :: else
        fi
    :: else
    fi;
    looked = 0
}

proctype sender(byte me)
{
    byte at, q, other, looked, none;
    bool is_mine;
#ifdef LOOKS_FIRST
    load_relaxed(WATCHED, looked);
    store_release(INBOX(me), 1);
    if
    :: looked == 0 -> looked = 0; note()
    :: else -> looked = 0
    fi
#else
    store_release(INBOX(me), 1);
    note()
#endif
}

active proctype sweeper()
{
    byte me = SWEEPER, at, q, other, i, looked, none;
    bool is_mine, is_still;
    do
    :: in_lists == 1 && NEWEST(WATCHED) == 1 && (NEWEST(NOTED) == 1 || count[NOTED] == 1) ->
        swap_acquire(NOTED, 0, looked);
        for (i : 0 .. SENDERS - 1) {
            swap_acquire(INBOX(i), 0, looked)
        }
        i = 0;
        in_lists--;
        read_plain(NEXT, looked);
        write_plain(NEXT, 0);
        looked = 0;
#ifdef UNWATCHED_RELAXED
        store_relaxed(WATCHED, 0);
#else
        store_release(WATCHED, 0); // step unwatch
#endif
#ifndef NO_BARRIER
        barrier_all();
#endif
        is_still = true;
#ifndef NOT_JUDGED
        for (i : 0 .. SENDERS - 1) { // step judge
            load_relaxed(INBOX(i), looked);
            is_still = is_still && looked == 0
        }
        i = 0;
        looked = 0;
#endif
        if
        :: !is_still -> note()
        :: else
        fi;
        is_still = false
    :: timeout -> break
    od;
    assert(NEWEST(INBOX(0)) == 0 && NEWEST(INBOX(1)) == 0)
}

init {
    byte me = SWEEPER, q;
    atomic {
        store_relaxed(WATCHED, 1);
        store_relaxed(NOTED, 0); // its first entry in the list
        for (q : 0 .. PLACES - 1) {
            VIEW(0, q) = count[q];
            VIEW(1, q) = count[q];
            VIEW(SWEEPER, q) = count[q]
        }
        q = 0;
        run sender(0);
        run sender(1)
    }
}
