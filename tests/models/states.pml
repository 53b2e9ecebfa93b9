// A block of a hardened slab that is checked while it may change: secure/states.h, secure/states.c.
//
// A thread takes the block, frees it, and takes it again, each time writing its two words (they
// stand for canary and zeros here: 1 in a block in use, 0 in a free one), without a lock. Another thread
// checks them meanwhile: the words that it trusts are those of the state. The number in the state is assumed not to
// wrap around: that takes 64 changes within one check.
//
// mutant: BEGIN_UNFENCED    a word is visible before the state that says that it changes
// mutant: END_RELAXED       the state is visible before the words
// mutant: LOOK_RELAXED      the same on the other side
// mutant: LOOK_UNFENCED     the state is read again before the words are read
// mutant: LOOKS_ONCE        the state is not read again
// mutant: NO_NUMBER         a state that has changed back passes for an unchanged one
#define STATE 0
#define WORD_1 1
#define WORD_2 2
#define PLACES 3
#define THREADS 2
#define VALUES 12
#include "memory.pml"

#define FREE 0
#define OUT  1
#define BUSY 3
#define KINDS 4

#ifdef BEGIN_UNFENCED
#    define store_word(p, v) store_relaxed(p, v)
#else
#    define store_word(p, v) store_release(p, v) // hak_fence_stores stands before it
#endif

#ifdef NO_NUMBER
#    define NEXT(state, kind) (kind)
#else
#    define NEXT(state, kind) ((state) / KINDS * KINDS + KINDS + (kind))
#endif

inline change(kind, word)
{
    state = state / KINDS * KINDS + BUSY;
    store_relaxed(STATE, state); // step begin
    store_word(WORD_1, word);
    store_word(WORD_2, word);
    state = NEXT(state, kind);
#ifdef END_RELAXED
    store_relaxed(STATE, state)
#else
    store_release(STATE, state) // step end
#endif
}

proctype owner()
{
    byte me = 0, at, q, state;
    change(OUT, 1);
    change(FREE, 0);
    change(OUT, 1)
}

proctype looker()
{
    byte me = 1, at, q, before, after, word_1, word_2;
#ifdef LOOK_RELAXED
    load_relaxed(STATE, before);
#else
    load_acquire(STATE, before); // step look
#endif
    load_relaxed(WORD_1, word_1);
    load_relaxed(WORD_2, word_2);
#ifndef LOOK_UNFENCED
    d_step { // hak_fence_loads
        take_view(WORD_1, VIEW(me, WORD_1));
        take_view(WORD_2, VIEW(me, WORD_2));
        q = 0
    }
#endif
#ifdef LOOKS_ONCE
    after = before;
#else
    load_relaxed(STATE, after); // step look_again
#endif
    if
    :: before == after && before % KINDS != BUSY ->
        assert(word_1 == (before % KINDS == OUT));
        assert(word_2 == (before % KINDS == OUT))
    :: else
    fi
}

init {
    atomic {
        run owner();
        run looker()
    }
}
