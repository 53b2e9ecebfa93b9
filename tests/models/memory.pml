// memory.pml -- memory as C11 guarantees it, for the other models.
//
// A place is the row of all values ever stored there, oldest first. A thread's view has, for each
// place, the oldest value that the thread may still read. A store appends; a thread never falls
// behind a value that it has read or written (coherence). Relaxed operations guarantee no more. A release
// store carries its thread's view along, and a thread that reads it by an acquire load adopts the view. A
// read-modify-write reads the newest value and passes on the view that came with it (the release
// sequence). hak_os_barrier_all makes each thread, at a moment of its own, exchange views with
// all others: that is a full fence. (After Kang and others, A promising semantics for relaxed-memory
// concurrency, 2017, without promises: no load appears to come after a later store. Where the
// allocator's own code relies on that, there is a branch on the loaded value between the two.)
//
// A model that includes this defines PLACES, THREADS and VALUES (the most stores to one place, with the first), and
// has `me`, the thread's number, in each process. STORES_IN_ORDER makes each load an acquire and each
// store a release, which is weaker than what x86 guarantees.

byte value[PLACES * VALUES];
byte count[PLACES];                   // values of a place, less the first, which is 0
byte view[THREADS * PLACES];          // index of the oldest that may be read
byte carried[PLACES * VALUES * PLACES]; // the view that came with a value
byte fence[PLACES];                   // the view that full fences exchange

#define VIEW(t, p)        view[(t) * PLACES + (p)]
#define CARRIED(p, at, q) carried[((p) * VALUES + (at)) * PLACES + (q)]
#define NEWEST(p)         value[(p) * VALUES + count[p]]
#define RAISE(to, from)         \
    if                          \
    :: (to) < (from) -> to = from \
    :: else                     \
    fi

// The view that came with value `at` of place p becomes part of this thread's view.
inline take_view(p, at)
{
    for (q : 0 .. PLACES - 1) {
        RAISE(VIEW(me, q), CARRIED(p, at, q));
    }
}

inline give_view(p, at)
{
    for (q : 0 .. PLACES - 1) {
        RAISE(CARRIED(p, at, q), VIEW(me, q));
    }
}

inline load_any(p, result, acquires)
{
    atomic {
        at = VIEW(me, p);
        do
        :: at < count[p] -> at++
        :: break
        od;
        d_step {
            VIEW(me, p) = at;
            result = value[(p) * VALUES + at];
            if
            :: acquires -> take_view(p, at)
            :: else
            fi;
            at = 0;
            q = 0
        }
    }
}

inline append(p, v)
{
    count[p]++;
    assert(count[p] < VALUES); // otherwise the model is too small
    value[(p) * VALUES + count[p]] = v;
    VIEW(me, p) = count[p]
}

inline store_any(p, v, releases)
{
    d_step {
        append(p, v);
        if
        :: releases -> give_view(p, count[p])
        :: else
        fi;
        q = 0
    }
}

// `old`: the value before.
inline swap_any(p, v, old, acquires, releases)
{
    d_step {
        at = count[p];
        old = NEWEST(p);
        if
        :: acquires -> take_view(p, at)
        :: else
        fi;
        append(p, v);
        for (q : 0 .. PLACES - 1) {
            CARRIED(p, count[p], q) = CARRIED(p, at, q);
        }
        if
        :: releases -> give_view(p, count[p])
        :: else
        fi;
        at = 0;
        q = 0
    }
}

// Stores `v` if the newest value is `expected`; otherwise `expected` becomes the newest value.
inline cas_any(p, expected, v, done, acquires, releases)
{
    atomic {
        if
        :: NEWEST(p) == expected -> swap_any(p, v, expected, acquires, releases); done = true
        :: else ->
            d_step {
                VIEW(me, p) = count[p];
                expected = NEWEST(p);
                done = false
            }
        fi
    }
}

#ifdef STORES_IN_ORDER
#    define load_relaxed(p, result) load_any(p, result, true)
#    define store_relaxed(p, v)     store_any(p, v, true)
#else
#    define load_relaxed(p, result) load_any(p, result, false)
#    define store_relaxed(p, v)     store_any(p, v, false)
#endif
#define load_acquire(p, result)         load_any(p, result, true)
#define store_release(p, v)             store_any(p, v, true)
#define swap_acquire(p, v, old)         swap_any(p, v, old, true, false)
#define swap_acq_rel(p, v, old)         swap_any(p, v, old, true, true)
#define cas_acquire(p, expected, v, ok) cas_any(p, expected, v, ok, true, false)
#define cas_release(p, expected, v, ok) cas_any(p, expected, v, ok, false, true)
#define cas_relaxed(p, expected, v, ok) cas_any(p, expected, v, ok, false, false)

// Words that are not atomic: another thread's last store must have happened before.
inline read_plain(p, result)
{
    d_step {
        assert(VIEW(me, p) == count[p]);
        result = NEWEST(p)
    }
}

inline write_plain(p, v)
{
    d_step {
        assert(VIEW(me, p) == count[p]);
        append(p, v)
    }
}

inline full_fence(t)
{
    d_step {
        for (q : 0 .. PLACES - 1) {
            RAISE(VIEW(t, q), fence[q]);
            fence[q] = VIEW(t, q);
        }
        q = 0
    }
}

// The other threads pass it one after the other, while all continue.
inline barrier_all()
{
    full_fence(me);
    for (other : 0 .. THREADS - 1) {
        full_fence(other);
    }
    full_fence(me);
    other = 0
}

#ifdef LOCKS
// struct hak_lock, as lock.pml proves it: a thread that takes it sees what the last holder saw.
bool held[LOCKS];
byte left[LOCKS * PLACES];

inline lock_take(l)
{
    atomic {
        !held[l] -> held[l] = true;
        d_step {
            for (q : 0 .. PLACES - 1) {
                RAISE(VIEW(me, q), left[(l) * PLACES + q]);
            }
            q = 0
        }
    }
}

inline lock_try(l, taken)
{
    atomic {
        if
        :: !held[l] -> lock_take(l); taken = true
        :: else -> taken = false
        fi
    }
}

inline lock_drop(l)
{
    d_step {
        for (q : 0 .. PLACES - 1) {
            left[(l) * PLACES + q] = VIEW(me, q);
        }
        q = 0;
        held[l] = false
    }
}
#endif
