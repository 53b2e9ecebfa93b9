// How parcels reach the owner of their blocks: cache/remote.c.
//
// Two threads send to one cache, and each also opens the cache's parcels if it finds the lock free; the cache's
// own thread opens them with the lock. The thread that has opened a parcel reuses it. Each parcel is opened
// once for each time that it was sent, and the opener sees its content. (Blocks that are linked through
// their own memory when there is no parcel, `loose`, are sent and taken the same way.)
//
// mutant: SENT_RELAXED    the opener does not see the parcel's content
// mutant: TAKEN_RELAXED   the same on the other side
// mutant: NO_EXCHANGE     a parcel that comes between the load of the list and the store of NULL is lost
// mutant: POP_ONE         one parcel is taken instead of all: its next one may have changed meanwhile (ABA)
#define INBOX 0 // number of the newest parcel, 0: none
#define NEXT(parcel) (parcel)
#define CONTENT(parcel) (PARCELS + (parcel))
#define PARCELS 3
#define PLACES (2 * PARCELS + 1)
#define THREADS 3
#define VALUES 12
#define LOCKS 1
#include "memory.pml"

#define OWNER 2
#define NONE 0

byte sent;           // how often, for all parcels
byte opened;
bool travels[PARCELS + 1]; // sent and not yet opened
byte pending;        // under the lock: taken out of the inbox, not opened yet
byte threads_done;

inline send(parcel)
{
    sent++;
    assert(!travels[parcel]);
    travels[parcel] = true;
    write_plain(CONTENT(parcel), parcel + 10);
    load_relaxed(INBOX, head); // step send: linked, then handed over by one compare-and-swap
    do
    :: true ->
        write_plain(NEXT(parcel), head);
#ifdef SENT_RELAXED
        cas_relaxed(INBOX, head, parcel, done);
#else
        cas_release(INBOX, head, parcel, done);
#endif
        if
        :: done -> break
        :: else
        fi
    od
}

// With the lock: the next parcel, or NONE.
inline take_next(parcel)
{
#ifdef POP_ONE
    load_acquire(INBOX, parcel);
    do
    :: parcel == NONE -> break
    :: else ->
        load_relaxed(NEXT(parcel), head);
        cas_acquire(INBOX, parcel, head, done);
        if
        :: done -> break
        :: else
        fi
    od
#else
    if
    :: pending == NONE -> // step take: the list is only ever taken whole
        load_relaxed(INBOX, looked)
    :: else -> looked = NONE
    fi;
    if
    :: looked != NONE ->
#    ifdef NO_EXCHANGE
        load_acquire(INBOX, pending);
        store_relaxed(INBOX, NONE)
#    elif defined(TAKEN_RELAXED)
        swap_any(INBOX, NONE, pending, false, false)
#    else
        swap_acquire(INBOX, NONE, pending)
#    endif
    :: else
    fi;
    parcel = pending;
    if
    :: parcel != NONE -> read_plain(NEXT(parcel), pending)
    :: else
    fi
#endif
}

inline open(parcel)
{
    read_plain(CONTENT(parcel), looked);
    assert(looked == parcel + 10);
    assert(travels[parcel]);
    travels[parcel] = false;
    opened++
}

proctype sender(byte me)
{
    byte at, q, other, head, looked, parcel;
    bool done;
    send(me + 1);
    lock_try(0, done); // step help: an owner that does not come to empty its inbox
    if
    :: done ->
        take_next(parcel);
        if
        :: parcel != NONE -> open(parcel)
        :: else
        fi;
        lock_drop(0);
        if
        :: parcel != NONE -> send(parcel) // the parcel is reused
        :: else
        fi
    :: else
    fi;
    threads_done++
}

proctype owner()
{
    byte me = OWNER, at, q, other, head, looked, parcel;
    bool done;
    do
    :: threads_done == 2 && opened == sent -> break
    :: threads_done == 2 && opened != sent && pending == NONE && NEWEST(INBOX) == NONE ->
        assert(false) // lost
    :: NEWEST(INBOX) != NONE || pending != NONE ->
        lock_take(0);
        take_next(parcel);
        if
        :: parcel != NONE -> open(parcel)
        :: else
        fi;
        lock_drop(0)
    od
}

init {
    atomic {
        run sender(0);
        run sender(1);
        run owner()
    }
}
