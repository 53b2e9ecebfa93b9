// Caches, their threads and walks over all caches: cache/registry.c, cache/sweep.c, cache/reclaim.c.
//
// Threads reclaim a dead cache or make a new one, use it and end; the sweeper walks the list without
// its lock and breaks up dead caches. No cache has two threads, every cache that a walk meets is
// complete, and no other thread touches a cache's magazines while its thread does.
//
// mutant: ADDED_RELAXED      a walk meets a cache that is not filled in yet
// mutant: WALKED_RELAXED     the same on the other side
// mutant: STAYS_DEAD         a cache that got a thread is still in the list of dead caches
// mutant: STAYS_WHOLE        the sweeper breaks up a cache that has a thread again
// mutant: REVIVED_UNLOCKED   the sweeper may be working on the cache at this moment
#define ALL 0 // the newest cache, 0: none
#define NEXT(cache) (cache)
#define MAGAZINES(cache) (CACHES + (cache))
#define IS_WHOLE(cache) (2 * CACHES + (cache))
#define CACHES 2
#define PLACES (3 * CACHES + 1)
#define THREADS 3
#define VALUES 14
#define REGISTRY 0 // locks; a cache's lock has its number
#define LOCKS (CACHES + 1)
#include "memory.pml"

#define NONE 0

bool has_thread[CACHES + 1];
bool is_dead[CACHES + 1]; // in the list of dead caches
byte made;
byte threads_done;

inline use_magazines(cache)
{
    read_plain(MAGAZINES(cache), looked);
    write_plain(MAGAZINES(cache), looked + 1);
    looked = 0
}

inline cache_make()
{
    lock_take(REGISTRY);
    cache = NONE;
    if
    :: is_dead[1] -> cache = 1
    :: is_dead[2] -> cache = 2
    :: !is_dead[1] && !is_dead[2]
    fi;
    if
    :: cache != NONE -> // step take_over: out of the list, then with its own lock
#ifndef STAYS_DEAD
        is_dead[cache] = false;
#endif
#ifndef REVIVED_UNLOCKED
        lock_take(cache);
#endif
#ifndef STAYS_WHOLE
        store_relaxed(IS_WHOLE(cache), 0);
#endif
#ifndef REVIVED_UNLOCKED
        lock_drop(cache)
#endif
    :: else ->
        assert(made < CACHES); // at most as many as threads at a time
        made++;
        cache = made;
        write_plain(MAGAZINES(cache), 1);
        load_relaxed(ALL, looked); // step add: filled in, then in front of the list
        write_plain(NEXT(cache), looked);
        looked = 0;
#ifdef ADDED_RELAXED
        store_relaxed(ALL, cache)
#else
        store_release(ALL, cache)
#endif
    fi;
    lock_drop(REGISTRY);
    assert(!has_thread[cache]);
    has_thread[cache] = true
}

inline cache_end()
{
    has_thread[cache] = false;
    lock_take(cache);
    use_magazines(cache);
    store_relaxed(IS_WHOLE(cache), 1); // step end: whole, under its lock, then in the list
    lock_drop(cache);
    lock_take(REGISTRY);
    is_dead[cache] = true;
    lock_drop(REGISTRY)
}

proctype thread(byte me)
{
    byte at, q, other, cache, looked, round;
    for (round : me .. 1) { // the first thread twice
        cache_make();
        use_magazines(cache); // the fast paths, without a lock
        cache_end()
    }
    threads_done++
}

proctype sweeper()
{
    byte me = 2, at, q, other, cache, looked, round;
    bool taken;
    for (round : 1 .. 2) {
#ifdef WALKED_RELAXED
        load_relaxed(ALL, cache);
#else
        load_acquire(ALL, cache); // step walk: without the registry's lock
#endif
        do
        :: cache == NONE -> break
        :: cache != NONE ->
            load_relaxed(IS_WHOLE(cache), looked); // step break_up: whole, and still with its lock
            if
            :: looked == 1 -> lock_try(cache, taken)
            :: else
            fi;
            looked = 0;
            if
            :: taken ->
                load_relaxed(IS_WHOLE(cache), looked);
                if
                :: looked == 1 ->
                    looked = 0;
                    store_relaxed(IS_WHOLE(cache), 0);
                    use_magazines(cache)
                :: else -> looked = 0
                fi;
                taken = false;
                lock_drop(cache)
            :: else
            fi;
            read_plain(NEXT(cache), cache)
        od
    }
}

init {
    atomic {
        run thread(0);
        run thread(1);
        run sweeper()
    }
}
