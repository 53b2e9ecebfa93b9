// crew.h -- threads that start together, and the time until the last of them is done.
//
// Owns      the threads while they run.
// Threads   called by one; the members run side by side.
// Fails     a thread that cannot be started ends the program with code 1.
#ifndef WORKLOADS_CREW_H
#define WORKLOADS_CREW_H

#include <stddef.h>
#include <stdint.h>

enum {
    CREW_THREADS_MAX = 256,
    // Data that a thread writes all the time is aligned to this, so that two threads share no cache
    // line; it is twice the line's 64 bytes, as processors fetch lines in pairs.
    CREW_APART_BYTES = 128,
};

// Run `work` once for each of `count` members, each on a thread of its own. Member i is
// `members + i * member_bytes`. Returns nanoseconds from the start to the end of the last.
uint64_t crew_run(unsigned count, void (*work)(void *member), void *members, size_t member_bytes);

#endif
