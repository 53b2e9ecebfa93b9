// A slab and its owner: hak_reclaim_adopt, hak_reclaim_spare_slab, hak_reclaim_break_up (cache/reclaim.c),
// hak_owner_lock (owner/owner.c).
//
// A thread adopts a slab of a dead cache, or another takes it as a spare one, or it becomes an orphan because of
// the sweeper or of a request that would fail, or a new thread reclaims its cache, while a block is freed straight into it.
// A thread that touches the slab holds its owner's lock, the lists and the slab agree,
// and no thread waits for ever. (The hints has_spare and inbox_bytes are left out: after a wrong reading a thread asks a
// cache for nothing, or does not ask it.)
//
// mutant: TRUSTS_THE_HINT     the owner that was read without its lock is taken for the owner
// mutant: ADOPTS_FROM_A_LIVE  a cache that was dead a moment ago has a thread again
// mutant: ORPHANS_UNLOCKED    the sweeper moves a slab to the orphans without their lock
// mutant: OWNER_RELAXED       a slab's new owner is visible before the content of that owner
// mutant: WAITS_FOR_TWO       a thread waits for the second cache's lock, instead of trying it
#define OWNER 0 // hak_run.owner, a hint
#define TAG 1   // the slab's entries of the map
#define SLAB 2  // only the holder of the owner's lock may touch it
#define STATE 3 // of the dead cache
#define MADE 4  // the taker's cache, which its thread makes first
#define PLACES 5
#define THREADS 4
#define VALUES 10
#define LOCKS 4
#include "memory.pml"

#define ADOPTER 0 // caches, and their locks
#define TAKER 1
#define DEAD 2
#define ORPHANS 3
#define IS_DEAD 0
#define IS_LIVE 1

#ifdef OWNER_RELAXED
#    define store_owner(to) store_relaxed(OWNER, to)
#else
#    define store_owner(to) store_release(OWNER, to)
#endif

byte in_list = DEAD; // of which cache

inline touch()
{
    read_plain(SLAB, looked);
    assert(looked < VALUES);
    write_plain(SLAB, looked + 1);
    looked = 0
}

// Both locks held.
inline move(from, to)
{
    assert(in_list == from);
    in_list = to;
    touch(); // out of one list
    store_owner(to);
    store_relaxed(TAG, to);
    touch() // into the other
}

// Without a lock.
inline look(owner)
{
    load_acquire(OWNER, owner);
    if
    :: owner == TAKER ->
        read_plain(MADE, made);
        assert(made == 1)
    :: else
    fi
}

proctype adopter()
{
    byte me = 0, at, q, other, owner, state, tag, looked, made;
    bool taken;
    lock_take(ADOPTER);
    look(owner); // step adopt: look, try its lock, look again
    load_relaxed(STATE, state);
    if
    :: owner == DEAD && state == IS_DEAD -> lock_try(DEAD, taken)
    :: else
    fi;
    if
    :: taken ->
        load_relaxed(TAG, tag);
#ifndef ADOPTS_FROM_A_LIVE
        load_relaxed(STATE, state);
#endif
        if
        :: tag == DEAD && state == IS_DEAD ->
            assert(NEWEST(STATE) == IS_DEAD);
            move(DEAD, ADOPTER)
        :: else
        fi;
        lock_drop(DEAD)
    :: else
    fi;
    lock_drop(ADOPTER)
}

// The thread finds the slab in the list of the cache that it asks.
proctype taker()
{
    byte me = 1, at, q, other, from, looked;
    bool taken;
    write_plain(MADE, 1);
    lock_take(TAKER);
    for (from : ADOPTER .. DEAD) {
        if
        :: from != TAKER ->
#ifdef WAITS_FOR_TWO
            lock_take(from);
            taken = true;
#else
            lock_try(from, taken); // step spare: the second cache's lock is only tried
#endif
            if
            :: taken ->
                if
                :: in_list == from -> move(from, TAKER)
                :: else
                fi;
                lock_drop(from);
                taken = false
            :: else
            fi
        :: else
        fi
    }
    lock_drop(TAKER);
    lock_take(ORPHANS); // hak_reclaim_slab
    lock_drop(ORPHANS)
}

// What a new thread and the sweeper do with a dead cache: one after the other, in either order.
proctype other_thread()
{
    byte me = 2, at, q, other, looked, state, turn, from;
    bool taken;
    do
    :: turn == 2 -> break
    :: turn < 2 ->
        turn++;
        if
        :: true -> // registry_revive_locked; the new thread then spares nothing for the adopter
            lock_take(DEAD);
            store_relaxed(STATE, IS_LIVE); // step revive: under the cache's lock
            lock_drop(DEAD)
        :: true ->
            lock_try(DEAD, taken);
            if
            :: taken ->
                load_relaxed(STATE, state);
                if
                :: state == IS_DEAD && in_list == DEAD ->
#ifndef ORPHANS_UNLOCKED
                    lock_take(ORPHANS); // step leave: with both locks
#endif
                    move(DEAD, ORPHANS);
#ifndef ORPHANS_UNLOCKED
                    lock_drop(ORPHANS)
#endif
                :: else
                fi;
                lock_drop(DEAD);
                taken = false
            :: else
            fi
        :: true -> // step share: somebody is refused memory, and a live cache's slab becomes an orphan
            lock_take(TAKER);
            lock_take(ORPHANS);
            if
            :: in_list == TAKER -> move(TAKER, ORPHANS)
            :: else
            fi;
            lock_drop(ORPHANS);
            lock_drop(TAKER)
        :: true -> // a thread that holds the adopter's lock asks the taker's cache
            lock_take(ADOPTER);
            from = TAKER;
#ifdef WAITS_FOR_TWO
            lock_take(from);
            taken = true;
#else
            lock_try(from, taken);
#endif
            if
            :: taken -> lock_drop(from); taken = false
            :: else
            fi;
            lock_drop(ADOPTER)
        fi
    od
}

// hak_inbox_put_direct: into the slab, whichever cache owns it.
proctype freer()
{
    byte me = 3, at, q, other, owner, tag, looked, made;
    do
    :: true ->
        look(owner); // step lock_owner: until the map says the same with the lock held
        lock_take(owner);
        load_relaxed(TAG, tag);
        if
#ifdef TRUSTS_THE_HINT
        :: true -> break
#else
        :: tag == owner -> break
        :: tag != owner -> lock_drop(owner)
#endif
        fi
    od;
    assert(in_list == owner);
    touch();
    lock_drop(owner)
}

init {
    d_step {
        value[OWNER * VALUES] = DEAD;
        value[TAG * VALUES] = DEAD
    }
    atomic {
        run adopter();
        run taker();
        run other_thread();
        run freer()
    }
}
