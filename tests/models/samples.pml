// A sampled block, from the sample to its end: profile/sample.c.
//
// One thread takes a sample and passes the block to another, which frees it. Meanwhile a third frees another
// sampled block of the same slab, whose address shares its place in the filter. A thread that frees reads the
// slab's mark and the filter without a lock: it must never miss a sample, and in the end slab and filter are
// as if there had been none.
//
// mutant: HANDED_FIRST      the program gets the block before its slab is marked
// mutant: FILTER_UNLOCKED   two threads change one place of the filter at once
// mutant: COUNT_UNLOCKED    two threads change a slab's count of samples at once
// mutant: UNMARKS_BLINDLY   the mark is removed with the first sample, not with the last
#define FILTER 0
#define MARK 1   // in the slab's map entries
#define COUNT 2  // the slab's sampled_blocks; guarded by the owner's lock
#define HANDED 3 // the program's own: how the block goes from thread to thread
#define PLACES 4
#define THREADS 4
#define VALUES 8
#define LOCKS 2
#define SAMPLES_LOCK 0
#define OWNER_LOCK 1
#include "memory.pml"

bool is_in[3]; // the table, by block; guarded by the samples' lock
byte ended;

inline change_filter(by)
{
    load_relaxed(FILTER, looked);
    store_relaxed(FILTER, looked + by);
    looked = 0
}

inline mark_slab(by)
{
#ifndef COUNT_UNLOCKED
    lock_take(OWNER_LOCK);
#endif
    read_plain(COUNT, counted);
    write_plain(COUNT, counted + by);
#ifdef UNMARKS_BLINDLY
    store_relaxed(MARK, by == 1);
#else
    store_relaxed(MARK, counted + by > 0);
#endif
    counted = 0;
#ifndef COUNT_UNLOCKED
    lock_drop(OWNER_LOCK)
#endif
}

inline take_sample(block)
{
#ifdef FILTER_UNLOCKED
    change_filter(1);
#endif
    lock_take(SAMPLES_LOCK); // step record: the table and the filter
    is_in[block] = true;
#ifndef FILTER_UNLOCKED
    change_filter(1);
#endif
    lock_drop(SAMPLES_LOCK);
#ifdef HANDED_FIRST
    store_release(HANDED, 1);
    mark_slab(1)
#else
    mark_slab(1); // step mark: then the slab, and only then has the program the block
    store_release(HANDED, 1)
#endif
}

// The mark and the filter are looked at without a lock.
inline free_block(block)
{
    load_relaxed(MARK, looked);
    assert(looked != 0); // otherwise the sample survives its block
    load_relaxed(FILTER, looked); // step forget
    assert(looked != 0);
    looked = 0;
#ifdef FILTER_UNLOCKED
    change_filter(-1);
#endif
    lock_take(SAMPLES_LOCK);
    assert(is_in[block]);
    is_in[block] = false;
#ifndef FILTER_UNLOCKED
    change_filter(-1);
#endif
    lock_drop(SAMPLES_LOCK);
    mark_slab(-1) // step end: the slab's mark goes with its last sample
}

inline end_thread()
{
    atomic {
        lock_take(SAMPLES_LOCK);
        lock_drop(SAMPLES_LOCK);
        lock_take(OWNER_LOCK);
        lock_drop(OWNER_LOCK);
        ended++
    }
}

proctype sampler()
{
    byte me = 0, at, q, looked, counted;
    take_sample(1);
    end_thread()
}

proctype receiver()
{
    byte me = 1, at, q, looked, counted;
    do
    :: looked == 1 -> break
    :: looked == 0 -> NEWEST(HANDED) == 1; load_acquire(HANDED, looked)
    od;
    looked = 0;
    free_block(1);
    end_thread()
}

proctype other_user()
{
    byte me = 2, at, q, looked, counted;
    free_block(2);
    end_thread()
}

proctype reader()
{
    byte me = 3, q;
    ended == 3;
    lock_take(SAMPLES_LOCK);
    lock_take(OWNER_LOCK);
    assert(NEWEST(MARK) == 0);
    assert(NEWEST(COUNT) == 0);
    assert(NEWEST(FILTER) == 0);
    assert(!is_in[1] && !is_in[2])
}

init {
    d_step {
        is_in[2] = true;
        value[FILTER * VALUES] = 1;
        value[MARK * VALUES] = 1;
        value[COUNT * VALUES] = 1
    }
    atomic {
        run sampler();
        run receiver();
        run other_user();
        run reader()
    }
}
