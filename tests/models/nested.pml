// A list of free pieces that all threads push onto and pop from, without a lock: cache/nested.c.
//
// Two threads take pieces and give them back, one of them two at a time. No piece is in two hands, none is lost, and its next user
// sees the last user's writes. Where a free piece has the number of the next one, its user may write anything.
//
// mutant: NO_NUMBER       a piece that was taken and given back meanwhile looks unchanged
// mutant: GIVEN_RELAXED   the next user does not see the last one's writes
// mutant: LOOKED_RELAXED  the same on the other side; and an outdated next piece
// mutant: IN_STEPS        a change between the load of the list and the store is lost
#define LIST 0 // the first free piece, and in the upper bits how often the list has changed
#define NEXT(piece) (piece)
#define CONTENT(piece) (PIECES + (piece))
#define PIECES 2
#define PLACES (2 * PIECES + 1)
#define THREADS 2
#define VALUES 14
#include "memory.pml"

#define NONE 0
#define ANYTHING 3
#define FIRST(list) ((list) % 4)
#ifdef NO_NUMBER
#    define CHANGED(list, first) (first)
#else
#    define CHANGED(list, first) (((list) / 4 + 1) * 4 + (first))
#endif

bool is_used[PIECES + 1];
byte threads_done;

inline take(piece)
{
    do
    :: true ->
#ifdef LOOKED_RELAXED
        load_relaxed(LIST, list);
#else
        load_acquire(LIST, list); // step take: the first, and the one behind it
#endif
        piece = FIRST(list);
        if
        :: piece == NONE -> break
        :: else ->
            load_relaxed(NEXT(piece), next);
            cas_relaxed(LIST, list, CHANGED(list, next), done);
            if
            :: done -> break
            :: else
            fi
        fi
    od;
    if
    :: piece != NONE ->
        assert(next != ANYTHING);
        assert(!is_used[piece]);
        is_used[piece] = true;
        write_plain(CONTENT(piece), me + 1);
        store_relaxed(NEXT(piece), ANYTHING)
    :: else
    fi
}

inline give(piece)
{
    if
    :: piece != NONE ->
        read_plain(CONTENT(piece), next);
        assert(next == me + 1);
        is_used[piece] = false;
        load_relaxed(LIST, list);
        do
        :: true ->
            store_relaxed(NEXT(piece), FIRST(list)); // step give: linked, then pushed
#ifdef IN_STEPS
            store_release(LIST, CHANGED(list, piece));
            done = true;
#elif defined(GIVEN_RELAXED)
            cas_relaxed(LIST, list, CHANGED(list, piece), done);
#else
            cas_release(LIST, list, CHANGED(list, piece), done);
#endif
            if
            :: done -> break
            :: else
            fi
        od
    :: else
    fi;
    piece = NONE
}

inline end()
{
    threads_done++;
    done = false;
    next = 0;
    list = 0
}

proctype one_at_a_time(byte me)
{
    byte at, q, other, list, next, piece;
    bool done;
    take(piece);
    give(piece);
    take(piece);
    give(piece);
    end()
}

proctype two_at_a_time(byte me)
{
    byte at, q, other, list, next, piece, second;
    bool done;
    take(piece);
    take(second);
    give(piece);
    give(second);
    end()
}

init {
    byte count_free, first;
    d_step {
        value[LIST * VALUES] = 2;
        value[NEXT(2) * VALUES] = 1
    }
    atomic {
        run one_at_a_time(0);
        run two_at_a_time(1)
    }
    threads_done == 2;
    d_step {
        first = FIRST(NEWEST(LIST));
        do
        :: first == NONE || count_free > PIECES -> break
        :: else ->
            count_free++;
            first = NEWEST(NEXT(first))
        od;
        assert(count_free == PIECES)
    }
}
