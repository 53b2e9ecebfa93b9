// A place of BigCache, for one freed large block: cache/bigcache.h, cache/bigcache.c.
//
// A thread frees two blocks, allocates, and frees again; the sweeper, and the thread that ends the cache, give kept
// blocks back to the arena, from where a third thread takes blocks. No block is in two hands, none is
// lost, and its next user sees the last user's writes.
//
// mutant: PUT_RELAXED       the taker does not wait for the last user's writes
// mutant: TAKEN_RELAXED     the same on the other side
// mutant: TAKEN_IN_STEPS    two threads take the same block
// mutant: PUT_OVER          a block is put over another one, which is lost
#define HOT 0
#define CONTENT(block) (block) // what the block's user writes
#define ENTRY(block) (BLOCKS + (block))
#define BLOCKS 2
#define PLACES (2 * BLOCKS + 1)
#define THREADS 3
#define VALUES 14
#define LOCKS 1 // the arena's
#include "memory.pml"

#define NONE 0
#define IN_USE 0
#define IS_KEPT 1

mtype = { WITH_THREAD, IN_PLACE, IN_ARENA, WITH_OTHER };
mtype where[BLOCKS + 1];
bool threads_done;

inline use(block)
{
    write_plain(CONTENT(block), 1)
}

// large_give_kept
inline give_back(block)
{
    load_relaxed(ENTRY(block), looked);
    assert(looked == IS_KEPT);
    looked = 0;
    store_relaxed(ENTRY(block), IN_USE);
    lock_take(0);
    assert(where[block] == IN_PLACE);
    where[block] = IN_ARENA;
    lock_drop(0)
}

inline put(block)
{
    assert(where[block] == WITH_THREAD);
    where[block] = IN_PLACE;
    store_relaxed(ENTRY(block), IS_KEPT); // step put: the entry, then the place
#ifdef PUT_RELAXED
    store_relaxed(HOT, block)
#else
    store_release(HOT, block)
#endif
}

inline take(block)
{
#ifdef TAKEN_IN_STEPS
    load_acquire(HOT, block);
    store_relaxed(HOT, NONE)
#elif defined(TAKEN_RELAXED)
    swap_any(HOT, NONE, block, false, false)
#else
    swap_acquire(HOT, NONE, block) // step take_kept: by an exchange, whoever it is
#endif
}

inline free_block(block)
{
    use(block);
    load_relaxed(HOT, kept); // step keep: only into an empty place, which nobody else fills
    if
    :: kept == NONE -> put(block)
    :: else ->
#ifdef PUT_OVER
        put(block)
#else
        take(kept); // step keep_instead: the one there is taken out first
        put(block);
        if
        :: kept != NONE -> give_back(kept)
        :: else
        fi
#endif
    fi;
    kept = NONE
}

proctype thread()
{
    byte me = 0, at, q, other, kept, block, looked, i;
    free_block(1);
    free_block(2);
    for (i : 1 .. 2) {
        take(block);
        if
        :: block != NONE ->
            assert(where[block] == IN_PLACE);
            where[block] = WITH_THREAD;
            store_relaxed(ENTRY(block), IN_USE);
            free_block(block)
        :: else
        fi
    }
    threads_done = true
}

proctype sweeper()
{
    byte me = 1, at, q, other, block, looked;
    bool is_last;
    do
    :: is_last -> break
    :: !is_last ->
        is_last = threads_done;
        if
        :: is_last -> at = 0; VIEW(me, HOT) = count[HOT] // by then it has seen everything
        :: else
        fi;
        load_relaxed(HOT, block);
        if
        :: block != NONE ->
            block = NONE;
            take(block); // step expire: as any other
            if
            :: block != NONE -> give_back(block)
            :: else
            fi;
            block = NONE
        :: block == NONE && is_last
        :: block == NONE && !is_last -> threads_done || NEWEST(HOT) != NONE
        fi
    od;
    lock_take(0);
    for (block : 1 .. BLOCKS) {
        assert(where[block] == IN_ARENA || where[block] == WITH_OTHER) // lost
    }
    lock_drop(0)
}

proctype other_user()
{
    byte me = 2, at, q, other, block;
    for (block : 1 .. BLOCKS) {
        lock_take(0);
        if
        :: where[block] == IN_ARENA ->
            where[block] = WITH_OTHER;
            use(block)
        :: else
        fi;
        lock_drop(0)
    }
}

init {
    d_step {
        where[1] = WITH_THREAD;
        where[2] = WITH_THREAD
    }
    atomic {
        run thread();
        run sweeper();
        run other_user()
    }
}
