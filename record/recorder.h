// recorder.h -- writes events into the calling thread's ring.
//
// Threads   any; each writes its own ring. Threads that found no ring of their own share one, with a
//           lock.
// Fails     never: an event without room is counted, and the program goes on.
//
// An event costs a check of the state, of the process's standing and of the room in the ring, and one word.
// Except in bursts of a process's only thread it also costs the processor's counter and a second word.
#ifndef HAK_RECORD_RECORDER_H
#define HAK_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "channel.h"
#include "stacks/code.h"

// The state of a thread.
struct recorder {
    struct ring *ring; // NULL: it has none yet, or shares one
    uint64_t *words;
    uint64_t head;
    uint64_t room_until;  // head may grow to this before `tail` has to be read again
    uint64_t short_until; // and to this before the clock has to be read; 0: each event has a time
    uint64_t time;        // as it was last read
    uint32_t process;     // the process's number when the thread introduced itself
    uint32_t standing;    // the process's, when the thread last read it
    uint32_t thread;
    uint8_t state;              // enum recorder_state
    uint8_t endings;            // how often its destructor was called
    uint8_t new_alignment_log2; // of the operator new that it is in; 0: not asked for
    size_t new_bytes;
    const void *inner; // what the call that it is in took last from malloc's family: within.h
    size_t inner_bytes;
};

enum recorder_state {
    RECORDER_NEW,
    RECORDER_IDLE,
    RECORDER_BUSY,    // in a call of malloc's family: what that calls in turn is not recorded
    RECORDER_IN_NEW,  // in an operator new: likewise, until what it asks for is refused
    RECORDER_WRITING, // what is taken now is the recorder's own
    RECORDER_OFF,     // there is no channel
};

// The lowest bit of a process's standing; the process's number is above it.
enum { STANDING_ALONE, STANDING_THREADS };

// The state of this process. The kernel zeroes its page in a forked child, however it was forked, which
// tells that the child has to introduce itself.
struct process {
    _Atomic(uint32_t) number; // 0: not known to the collector yet
    _Atomic(uint32_t) lock;   // for introducing it, and for `shared`
    _Atomic(uint32_t) threads;
    // Every event compares it: it changes with the number, and when there is a second thread.
    _Atomic(uint32_t) standing;
    struct recorder shared; // the ring of threads that have none
    // A bit for the number of each file: the collector has been told of it (codes.h).
    _Atomic(uint64_t) told[HAK_CODE_OBJECTS / 64];
};

HAK_INTERNAL extern HAK_TLS struct recorder hak_recorder;
HAK_INTERNAL extern struct process *hak_process;

HAK_INTERNAL bool hak_recorder_enter_slow(struct recorder *self);
// Record a call that needs more than to write one word into the thread's own ring, with room in it.
HAK_INTERNAL void hak_record_long(enum event_kind kind,
                                  const void *block,
                                  size_t bytes,
                                  unsigned alignment_log2);

// Begin a call. False: it is part of another one, or nothing is recorded; then do not leave.
HAK_INLINE bool hak_recorder_enter(void)
{
    struct recorder *self = &hak_recorder;
    if (HAK_UNLIKELY(self->state != RECORDER_IDLE)) {
        return hak_recorder_enter_slow(self);
    }
    self->state = RECORDER_BUSY;
    return true;
}

HAK_INLINE void hak_recorder_leave(void)
{
    atomic_signal_fence(memory_order_release); // a handler that allocates finds a whole event
    hak_recorder.state = RECORDER_IDLE;
}

// Record one call, between enter and leave, in one word. False if that is not enough.
HAK_INLINE bool hak_record_short(enum event_kind kind, const void *block, size_t bytes)
{
    struct recorder *self = &hak_recorder;
    const uint64_t head = self->head;
    const uint64_t address = (uintptr_t)block;
    if (HAK_UNLIKELY(head >= self->short_until ||
                     ((address & SHORT_ADDRESS_NOT) | bytes >> SHORT_SIZE_BITS) != 0 ||
                     self->standing != hak_load_relaxed(&hak_process->standing))) {
        return false;
    }
    self->words[head % RING_WORDS] =
        address << (SHORT_SIZE_BITS - SHORT_UNIT_LOG2) | bytes | (uint64_t)kind << SHORT_KIND_AT;
    self->head = head + 1;
    hak_store_release(&self->ring->head, head + 1); // pairs with: the collector's take
    return true;
}

// A call inside another one was refused. In an operator new that ends the recorded call: the new-handler, another try and the
// exception are the program's own calls.
HAK_INTERNAL void hak_record_refused(enum event_kind kind, size_t bytes, unsigned alignment_log2);

HAK_INLINE void hak_record(enum event_kind kind, const void *block, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_record_short(kind, block, bytes))) {
        hak_record_long(kind, block, bytes, 0);
    }
}

#endif
