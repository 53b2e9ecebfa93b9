// contention.h -- counts which locks are taken, and for how long, and the writes to words that threads share.
//
// Threads   a lock's counts: its holder. The others: any.
//
// Only in the build `contention` (tools/contention); in other builds the macros are empty. When the
// process ends, the library writes its counts as a line of JSON to the file that the variable
// HAK_CONTENTION names (src/contention.c).
#pragma once

#include "base/compiler.h"

#ifndef HAK_CONTENTION
#    define HAK_CONTENTION 0
#endif

#if HAK_CONTENTION

// A holder that takes longer than this, a millisecond or less, has lost its processor or visits the
// whole heap. Such times are counted separately, or they would hide the others.
#    define HAK_LONG_CYCLES (UINT64_C(1) << 21)

struct hak_lock_counts {
    uint64_t since; // HAK_CYCLES when the lock was taken; 0: unknown
    uint64_t takings;
    uint64_t contended; // those of the takings that had to wait
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

// A place in the sources that writes, by one atomic instruction, to a word that other threads write
// to as well. The linker puts all of them into one section.
struct hak_write_place {
    const char *file;
    const char *word;
    _Atomic(uint64_t) count;
} HAK_ALIGNED(HAK_CACHE_LINE);
#    define HAK_WRITE_SECTION __attribute__((section("hak_writes"), used))

// Calls of malloc, calloc, realloc and free. If two threads share an entry, a call may be lost.
enum { HAK_CALL_PLACES = 64 };
struct hak_call_place {
    _Atomic(uint64_t) count;
} HAK_ALIGNED(HAK_CACHE_LINE);
HAK_INTERNAL extern struct hak_call_place hak_call_places[HAK_CALL_PLACES];
HAK_INTERNAL extern HAK_TLS char hak_call_thread;
#    define HAK_COUNT_CALL() \
        hak_count(&hak_call_places[(uintptr_t)&hak_call_thread / 4096 % HAK_CALL_PLACES].count, 1)

// A shard's part of the memory. This build has 64 shards, like a machine with 64 processors. Such a machine has at least 2 GiB for
// each, of which this is a sixteenth; the machine at hand may have less.
#    define HAK_PART_OF_SHARD(bytes) ((bytes) > HAK_MIB(128) ? (bytes) : HAK_MIB(128))

#else
#    define HAK_LOCK_COUNTS
#    define HAK_LOCK_TAKEN(lock)     ((void)0)
#    define HAK_LOCK_WAITED(lock)    ((void)0)
#    define HAK_LOCK_DROPPED(lock)   ((void)0)
#    define HAK_COUNT_CALL()         ((void)0)
#    define HAK_PART_OF_SHARD(bytes) (bytes)
#endif
