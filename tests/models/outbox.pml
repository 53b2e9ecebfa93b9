// A parcel that its thread fills while a sweep takes blocks out: cache/remote.h, cache/remote.c.
//
// The thread adds blocks without a lock, and sends the parcel, which is then reused, with its
// cache's lock; the sweep takes the blocks out with the lock. Each block reaches its owner once.
//
// mutant: ADDED_RELAXED    the sweep reads a block from the parcel's earlier use
// mutant: COUNTED_RELAXED  the same on the other side
// mutant: COUNT_FIRST      the block is counted before it is in the parcel
// mutant: TAKEN_AND_LEFT   the sweep also leaves the block that it takes
#define COUNT 0
#define BLOCK(i) (1 + (i))
#define ROOM 2
#define PLACES (ROOM + 1)
#define THREADS 2
#define VALUES 10
#define LOCKS 1
#include "memory.pml"

#define NONE 0
#define BLOCKS 4

bool is_home[BLOCKS + 1];
bool done;

inline route(block)
{
    assert(!is_home[block]);
    is_home[block] = true
}

// outbox_send_locked, and the parcel comes back empty (parcel_make_locked).
inline send()
{
    lock_take(0); // step send_locked: replaced under the lock
    for (i : 0 .. count_here - 1) {
        load_relaxed(BLOCK(i), looked);
        if
        :: looked != NONE -> route(looked)
        :: else
        fi
    }
    store_relaxed(COUNT, 0);
    lock_drop(0)
}

proctype thread()
{
    byte me = 0, at, q, other, i, looked, count_here, block;
    for (block : 1 .. BLOCKS) {
        load_relaxed(COUNT, count_here); // step add: the block, then the count
#ifdef COUNT_FIRST
        store_release(COUNT, count_here + 1);
        store_relaxed(BLOCK(count_here), block);
#elif defined(ADDED_RELAXED)
        store_relaxed(BLOCK(count_here), block);
        store_relaxed(COUNT, count_here + 1);
#else
        store_relaxed(BLOCK(count_here), block);
        store_release(COUNT, count_here + 1);
#endif
        count_here++;
        if
        :: count_here == ROOM || block == BLOCKS -> send()
        :: count_here < ROOM && block < BLOCKS
        fi
    }
    for (block : 1 .. BLOCKS) {
        assert(is_home[block])
    }
    done = true
}

proctype sweep()
{
    byte me = 1, at, q, other, i, looked, count_here;
    do
    :: done -> break
    :: !done ->
        lock_take(0);
#ifdef COUNTED_RELAXED
        load_relaxed(COUNT, count_here);
#else
        load_acquire(COUNT, count_here); // step send_on: those below the count are there
#endif
        for (i : 0 .. count_here - 1) {
            load_relaxed(BLOCK(i), looked);
            if
            :: looked != NONE ->
#ifndef TAKEN_AND_LEFT
                store_relaxed(BLOCK(i), NONE);
#endif
                route(looked)
            :: else
            fi
        }
        lock_drop(0);
        count_here = 0;
        looked = 0;
        i = 0
    od
}

init {
    atomic {
        run thread();
        run sweep()
    }
}
