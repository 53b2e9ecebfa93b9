// contention.h -- counts who takes which lock for how long, and who writes to what threads share.
//
// Threads   the counts of a lock: its holder. The others: any.
//
// In the build `contention` alone (tools/contention); in others nothing is left of it. There the
// library writes its counts at the end of the process, as a line of JSON, to the file that the variable
// HAK_CONTENTION names (src/contention.c).
#pragma once

#include "base/compiler.h"

#ifndef HAK_CONTENTION
#    define HAK_CONTENTION 0
#endif

#if HAK_CONTENTION

// Longer than this, a millisecond or less, the holder has lost its processor or goes over the whole
// heap: such times are counted apart, or they would hide what the others are.
#    define HAK_LONG_CYCLES (UINT64_C(1) << 21)

struct hak_lock_counts {
    uint64_t since; // HAK_CYCLES when it was taken; 0: that was not seen
    uint64_t takings;
    uint64_t contended; // of them, those that had to wait
    uint64_t held_cycles;
    uint64_t long_takings;
    uint64_t long_cycles;
};
#    define HAK_LOCK_COUNTS struct hak_lock_counts counts;

HAK_INLINE void hak_contention_taken(struct hak_lock_counts *counts)
{
    counts->since = HAK_CYCLES();
}

HAK_INLINE void hak_contention_waited(struct hak_lock_counts *counts)
{
    counts->contended++;
    if (counts->since == 0) {
        hak_contention_taken(counts);
    }
}

HAK_INLINE void hak_contention_dropped(struct hak_lock_counts *counts)
{
    const uint64_t held = counts->since != 0 ? HAK_CYCLES() - counts->since : 0;
    counts->since = 0;
    counts->takings++;
    counts->long_takings += held >= HAK_LONG_CYCLES;
    *(held >= HAK_LONG_CYCLES ? &counts->long_cycles : &counts->held_cycles) += held;
}

#    define HAK_LOCK_TAKEN(lock)   hak_contention_taken(&(lock)->counts)
#    define HAK_LOCK_WAITED(lock)  hak_contention_waited(&(lock)->counts)
#    define HAK_LOCK_DROPPED(lock) hak_contention_dropped(&(lock)->counts)

// A place in the sources that writes to a word which other threads write to as well, by one atomic
// instruction. They all lie in a section of their own.
struct hak_write_place {
    const char *file;
    const char *word;
    _Atomic(uint64_t) count;
} HAK_ALIGNED(HAK_CACHE_LINE);
#    define HAK_WRITE_SECTION __attribute__((section("hak_writes"), used))

// Calls of malloc, calloc, realloc and free. Of two threads that share a place a call may be lost.
enum { HAK_CALL_PLACES = 64 };
struct hak_call_place {
    _Atomic(uint64_t) count;
} HAK_ALIGNED(HAK_CACHE_LINE);
HAK_INTERNAL extern struct hak_call_place hak_call_places[HAK_CALL_PLACES];
HAK_INTERNAL extern HAK_TLS char hak_call_thread;
#    define HAK_COUNT_CALL() \
        hak_count(&hak_call_places[(uintptr_t)&hak_call_thread / 4096 % HAK_CALL_PLACES].count, 1)

// A sixteenth of the memory, for each shard. There are 64 of these, as on a machine with 64 processors, which has 2 GiB for each at
// least; this one may have less.
#    define HAK_PART_OF_SHARD(bytes) ((bytes) > HAK_MIB(128) ? (bytes) : HAK_MIB(128))

#else
#    define HAK_LOCK_COUNTS
#    define HAK_LOCK_TAKEN(lock)     ((void)0)
#    define HAK_LOCK_WAITED(lock)    ((void)0)
#    define HAK_LOCK_DROPPED(lock)   ((void)0)
#    define HAK_COUNT_CALL()         ((void)0)
#    define HAK_PART_OF_SHARD(bytes) (bytes)
#endif
