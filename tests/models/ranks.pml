// Which locks are held together: the ranks of os/lock.h, and the places that break them only by trying.
//
// Every operation that takes more than one lock runs at the same time as the others, each any number of times: fork (all
// locks), a sweep, the end of a heap, of a thread and of its cache, a free that drains a full inbox,
// a refill that looks for a slab elsewhere. Whatever they wait for, one of them can always go on.
//
// mutant: HELPS_BY_WAITING  a sender waits for the lock of the cache that it sends to
// mutant: FORKS_BACKWARDS   fork takes the arena's lock before the caches'
// mutant: SWEEPS_UNRANKED   a sweep takes its lock after the first cache's
#define SWEEP 0
#define REGISTRY 1
#define CACHE_A 2 // in the order of the list
#define CACHE_B 3
#define LATE 4
#define ORPHANS 5
#define ARENA 6
#define POOL 7
#define LOCKS 8

bool held[LOCKS];

#define TAKE(l) atomic { !held[l] -> held[l] = true }
#define DROP(l) held[l] = false
#define TRY(l, taken)                       \
    atomic {                                \
        if                                  \
        :: !held[l] -> held[l] = true; taken = true \
        :: else -> taken = false            \
        fi                                  \
    }

inline slab_made() // hak_slab_make: a bitmap, then units, which may take a descriptor
{
    TAKE(POOL); DROP(POOL);
    TAKE(ARENA); TAKE(POOL); DROP(POOL); DROP(ARENA)
}

// A refill of `mine`: its orphans' slab, one that `yours` can spare, or a new one; and parcels for `yours`.
inline slow_path(mine, yours)
{
    TAKE(mine);
    TAKE(ORPHANS); DROP(ORPHANS);
#ifdef HELPS_BY_WAITING
    TAKE(yours); taken = true;
#else
    TRY(yours, taken);
#endif
    if
    :: taken -> TAKE(ARENA); DROP(ARENA); DROP(yours)
    :: else
    fi;
    slab_made();
    DROP(mine)
}

active proctype thread_a()
{
    bool taken;
    do
    :: slow_path(CACHE_A, CACHE_B)
    od
}

active proctype thread_b()
{
    bool taken;
    do
    :: slow_path(CACHE_B, CACHE_A)
    :: // the thread ends: its cache becomes a dead one, and is broken up if there are too many
        TAKE(CACHE_B); DROP(CACHE_B);
        TAKE(REGISTRY); DROP(REGISTRY);
        TRY(CACHE_B, taken);
        if
        :: taken -> TAKE(ORPHANS); DROP(ORPHANS); DROP(CACHE_B)
        :: else
        fi
    :: // the thread starts: it reclaims a cache, with the registry's lock
        TAKE(REGISTRY); TAKE(CACHE_B); DROP(CACHE_B); DROP(REGISTRY)
    :: // a thread without a cache frees
        TAKE(LATE); DROP(LATE)
    od
}

// The sweeper's own cache is left out: no other thread takes its lock without the sweep's.
active proctype sweeper()
{
    bool taken;
    do
    :: // a sweep, and the end of a heap, which must not coincide with a sweep
#ifdef SWEEPS_UNRANKED
        TAKE(CACHE_A); TAKE(SWEEP);
        DROP(CACHE_A);
#else
        TAKE(SWEEP);
        TRY(CACHE_A, taken);
        if
        :: taken -> TAKE(ORPHANS); DROP(ORPHANS); TAKE(ARENA); DROP(ARENA); DROP(CACHE_A)
        :: else
        fi;
#endif
        TAKE(CACHE_B); TAKE(ARENA); DROP(ARENA); DROP(CACHE_B);
        TAKE(ORPHANS); TAKE(ARENA); TAKE(POOL); DROP(POOL); DROP(ARENA); DROP(ORPHANS);
        TAKE(LATE); DROP(LATE);
        DROP(SWEEP)
    od
}

active proctype forker()
{
    do
    :: // fork, and a thread that reads exact statistics
        TAKE(SWEEP);
#ifdef FORKS_BACKWARDS
        TAKE(ARENA);
#endif
        TAKE(REGISTRY); TAKE(CACHE_A); TAKE(CACHE_B); TAKE(LATE); TAKE(ORPHANS);
#ifndef FORKS_BACKWARDS
        TAKE(ARENA);
#endif
        TAKE(POOL);
        DROP(POOL); DROP(ARENA); DROP(ORPHANS); DROP(LATE); DROP(CACHE_A); DROP(CACHE_B);
        DROP(REGISTRY); DROP(SWEEP)
    od
}
