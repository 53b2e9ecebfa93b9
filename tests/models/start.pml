// Data that is made once and then read by all without a lock: start_tables (cache/start.c), and in the same
// way a superslab's descriptor in the map (hak_map_publish, hak_map_super).
//
// Three threads need it at the same time. One makes it, none sees it incomplete.
//
// mutant: MADE_RELAXED    its mark is visible before its content
// mutant: LOOKED_RELAXED  the same on the other side
// mutant: ONE_LOOK        a thread that waited for the lock makes it again
#define STARTED 0
#define TABLE 1
#define PLACES 2
#define THREADS 3
#define VALUES 5
#define LOCKS 1
#include "memory.pml"

byte times_made;

proctype thread(byte me)
{
    byte at, q, other, looked;
#ifdef LOOKED_RELAXED
    load_relaxed(STARTED, looked);
#else
    load_acquire(STARTED, looked); // step look: without the lock
#endif
    if
    :: looked == 0 ->
        lock_take(0);
#ifndef ONE_LOOK
        load_relaxed(STARTED, looked); // step make: a second look, with the lock
#endif
        if
        :: looked == 0 ->
            write_plain(TABLE, 1);
            times_made++;
#ifdef MADE_RELAXED
            store_relaxed(STARTED, 1)
#else
            store_release(STARTED, 1)
#endif
        :: else
        fi;
        lock_drop(0)
    :: else
    fi;
    read_plain(TABLE, looked);
    assert(looked == 1 && times_made == 1)
}

init {
    atomic {
        run thread(0);
        run thread(1);
        run thread(2)
    }
}
