// The thief's fence in a sleeping thread's magazine: cache/steal.h, cache/steal.c, cache/fast_path.h.
//
// An owner allocates and frees by its fast paths, as it likes, and by the slow paths when the magazine
// looks empty or full; a thief tries to steal twice. No block is ever in two hands, and none is lost.
//
// variant: STORES_IN_ORDER  one barrier is enough where the processor keeps the order of stores
// mutant: NO_BARRIER        the owner may not have seen the NULL yet
// mutant: ONE_BARRIER       top appears to rise before the block is in its new place
// mutant: NO_SECOND_LOOK    the owner has meanwhile been below the fence
// mutant: UNDECIDED         a block that the owner may have in its hand is stolen
// mutant: STALE_TOP         a block that was put there between the load of top and the NULL is lost
// mutant: FORGET            a fence is still up when the magazine's blocks are moved
// mutant: PUT_BACK_BLINDLY  by then the owner has put another block there
#ifndef OPERATIONS
#    define OPERATIONS 5
#endif
#define SLOTS 3 // places 1 to SLOTS hold blocks; 0 and SLOTS + 1 are the ends
#define TOP   0 // the other places are PLACE(i)
#define PLACE(i) (i)
#define PLACES (SLOTS + 1)
#define THREADS 2
#define VALUES 14
#define LOCKS 1
#include "memory.pml"

#define OWNER 0
#define THIEF 1
#define NONE 0
#define BLOCKS (SLOTS + 1) // the last one is with the owner

mtype = { IN_MAGAZINE, WITH_OWNER, IN_SLAB };
mtype where[BLOCKS + 1] = IN_MAGAZINE; // the truth, for the assertions
bool ended;

// With the lock.
byte bottom;
byte fence_at; // 0: none
byte fenced;

inline owner_gets(block)
{
    assert(where[block] == IN_MAGAZINE);
    where[block] = WITH_OWNER
}

// fence_stands: top first, then the place.
inline fence_stands(top, stands)
{
    load_relaxed(PLACE(fence_at), looked);
    stands = top > fence_at && looked == NONE
}

inline unfence()
{
    if
    :: fence_at != 0 ->
        load_relaxed(TOP, top);
        fence_stands(top, stands);
        if
#ifdef FORGET
        :: true
#elif defined(PUT_BACK_BLINDLY)
        :: true -> store_relaxed(PLACE(fence_at), fenced)
#else
        :: stands -> store_relaxed(PLACE(fence_at), fenced)
        :: else
#endif
        fi;
        fence_at = 0
    :: else
    fi
}

// hak_refill: takes the block behind a fence; without a fence the slab would give blocks.
inline refill()
{
    lock_take(0);
    block = NONE;
    if
    :: fence_at != 0 -> // step fenced: the block behind an undecided fence
        load_relaxed(TOP, top);
        fence_stands(top, stands);
        if
        :: stands ->
            block = fenced;
            store_relaxed(TOP, fence_at)
        :: else
        fi;
        fence_at = 0
    :: else
    fi;
    if
    :: block == NONE ->
        bottom = 0;
        store_relaxed(TOP, 1)
    :: else -> owner_gets(block)
    fi;
    lock_drop(0)
}

// hak_magazine_spill: the lower half leaves, the rest moves down.
inline spill(freed)
{
    lock_take(0);
    unfence(); // step unfence: before the blocks are moved
    load_relaxed(TOP, top);
    gone = (bottom < top / 2 -> top / 2 : bottom); // of top - 1 blocks
    for (i : 1 .. gone) {
        if
        :: i > bottom ->
            load_relaxed(PLACE(i), looked);
            assert(where[looked] == IN_MAGAZINE);
            where[looked] = IN_SLAB
        :: else
        fi
    }
    for (i : gone + 1 .. top - 1) {
        load_relaxed(PLACE(i), looked);
        assert(looked != NONE);
        store_relaxed(PLACE(i - gone), looked)
    }
    bottom = 0;
    store_relaxed(PLACE(top - gone), freed);
    store_relaxed(TOP, top - gone + 1);
    i = 0;
    gone = 0;
    lock_drop(0)
}

proctype owner()
{
    byte me = OWNER, at, q, other, i, gone, top, looked, block, left_to_do = OPERATIONS;
    bool stands;
    do
    :: left_to_do == 0 -> break
    :: left_to_do > 0 ->
        left_to_do--;
        if
        :: block = NONE
        :: where[1] == WITH_OWNER -> block = 1
        :: where[2] == WITH_OWNER -> block = 2
        :: where[3] == WITH_OWNER -> block = 3
        :: where[4] == WITH_OWNER -> block = 4
        fi;
        if
        :: block == NONE -> // step malloc: top, the place below it, top again
            load_relaxed(TOP, top);
            if
            :: top == 1 -> block = NONE // place 0 is always NULL
            :: else -> load_relaxed(PLACE(top - 1), block)
            fi;
            if
            :: block != NONE ->
                owner_gets(block);
                store_relaxed(TOP, top - 1)
            :: else -> refill()
            fi
        :: else ->
            where[block] = IN_MAGAZINE; // step free: the place at top, then top
            load_relaxed(TOP, top);
            if
            :: top == SLOTS + 1 -> spill(block)
            :: else ->
                store_relaxed(PLACE(top), block);
                store_relaxed(TOP, top + 1)
            fi
        fi
    od;
    ended; // then the owner allocates all blocks that are left
    do
    :: true ->
        load_relaxed(TOP, top);
        if
        :: top == 1 -> block = NONE
        :: else -> load_relaxed(PLACE(top - 1), block)
        fi;
        if
        :: block != NONE ->
            owner_gets(block);
            store_relaxed(TOP, top - 1)
        :: else ->
            refill();
            if
            :: block == NONE -> break
            :: else
            fi
        fi
    od;
    for (i : 1 .. BLOCKS) {
        assert(where[i] != IN_MAGAZINE) // lost
    }
}

inline steal()
{
    lock_take(0);
    load_acquire(TOP, top); // step fence: NULL into the place two below top
    if
    :: fence_at == 0 && top > bottom + 2 ->
        fence_at = top - 2;
        swap_acq_rel(PLACE(fence_at), NONE, fenced)
    :: else
    fi;
    if
    :: fence_at != 0 ->
#ifndef NO_BARRIER
        if
        :: goto undecided // the kernel has refused the barrier
        :: true
        fi;
        barrier_all(); // step barrier: every store before it is seen, every load after it sees
#endif
#ifndef NO_SECOND_LOOK
        load_acquire(TOP, top); // step look: top once more, then the place
#endif
#if !defined(STORES_IN_ORDER) && !defined(ONE_BARRIER) && !defined(NO_BARRIER)
        barrier_all(); // step second_barrier: where stores may be seen out of order
#endif
        load_relaxed(PLACE(fence_at), looked);
        if // step judge: nothing, undecided, or all up to the fence
        :: looked != NONE -> fence_at = 0
#ifdef STALE_TOP
        :: looked == NONE && top <= fence_at -> fence_at = 0
#else
        :: looked == NONE && top <= fence_at
#endif
#ifndef UNDECIDED
        :: looked == NONE && top == fence_at + 1
        :: looked == NONE && top > fence_at + 1 ->
#else
        :: looked == NONE && top > fence_at ->
#endif
            for (i : bottom + 1 .. fence_at - 1) {
                load_relaxed(PLACE(i), looked);
                assert(where[looked] == IN_MAGAZINE);
                where[looked] = IN_SLAB
            }
            assert(where[fenced] == IN_MAGAZINE);
            where[fenced] = IN_SLAB;
            bottom = fence_at;
            fence_at = 0;
            i = 0
        fi
    :: else
    fi;
undecided:
    lock_drop(0)
}

proctype thief()
{
    byte me = THIEF, at, q, other, i, top, looked, look;
    bool stands;
    for (look : 1 .. 2) {
        steal();
    }
    ended = true
}

init {
    d_step {
        value[TOP * VALUES] = SLOTS + 1;
        value[PLACE(1) * VALUES] = 1;
        value[PLACE(2) * VALUES] = 2;
        value[PLACE(3) * VALUES] = 3;
        where[0] = IN_SLAB;
        where[BLOCKS] = WITH_OWNER
    }
    atomic {
        run owner();
        run thief()
    }
}
