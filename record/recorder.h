// recorder.h -- writes events into the calling thread's ring.
//
// Threads   any; each writes its own ring. Rings of several threads, for those that found none of
//           their own, are behind a lock.
// Fails     never: what finds no room is counted, and the program goes on.
//
// The price of an event: a look at the state, at the process's standing and at the room in the ring, and
// the two words of the event; and the processor's counter, but for bursts of a process's only thread.
#ifndef HAK_RECORD_RECORDER_H
#define HAK_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "channel.h"

// What a thread knows of itself.
struct recorder {
    struct ring *ring; // NULL: it has none yet, or shares one
    struct event *events;
    uint64_t head;
    uint64_t room_until; // head may grow to this before `tail` has to be looked at
    uint64_t time;       // when it was last asked for
    uint64_t timed_from; // events before this one have no time of their own; 0: each has
    uint32_t process;    // the process's number when the thread introduced itself
    uint32_t standing;   // the process's, when the thread last looked
    uint32_t thread;
    uint8_t state;   // enum recorder_state
    uint8_t endings; // how often its destructor was called
};

enum recorder_state {
    RECORDER_NEW,
    RECORDER_IDLE,
    RECORDER_BUSY, // in a call of malloc's family: what that calls in turn is not recorded
    RECORDER_OFF,  // there is no channel
};

// The lowest bit of a process's standing; its number is above.
enum { STANDING_ALONE, STANDING_THREADS };

// This process's part. Its page is zeroed in a forked child by the kernel, however it was forked, and
// so tells that the child has to introduce itself.
struct process {
    _Atomic(uint32_t) number; // 0: not known to the collector yet
    _Atomic(uint32_t) lock;   // for introducing it, and for `shared`
    _Atomic(uint32_t) threads;
    // What every event compares: it changes with the number, and when there is a second thread.
    _Atomic(uint32_t) standing;
    struct recorder shared; // the ring of threads that have none
};

HAK_INTERNAL extern HAK_TLS struct recorder hak_recorder;
HAK_INTERNAL extern struct process *hak_process;
HAK_INTERNAL extern bool hak_with_clock;
HAK_INTERNAL extern uint64_t hak_burst_ticks;

HAK_INTERNAL bool hak_recorder_enter_slow(struct recorder *self);
// Whatever is not one event into a thread's own ring with room.
HAK_INTERNAL void hak_record_slow(enum event_kind kind,
                                  const void *block,
                                  size_t bytes,
                                  unsigned alignment_log2);

HAK_INLINE uint64_t hak_record_time(void)
{
    if (HAK_UNLIKELY(hak_with_clock)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    }
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

HAK_INLINE uint64_t hak_event_first(enum event_kind kind, uint64_t address, unsigned alignment_log2)
{
    return (address & 0xffffffffffff) | (uint64_t)alignment_log2 << 48 | (uint64_t)kind << 56;
}

HAK_INLINE uint64_t hak_event_second(uint64_t bytes, uint64_t time)
{
    return bytes | time >> EVENT_TIME_SHIFT << EVENT_SIZE_BITS;
}

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

// The time, and whether the next events are likely to need their own.
HAK_INLINE uint64_t hak_recorder_ask_time(struct recorder *self)
{
    const uint64_t time = hak_record_time();
    if (self->standing % 2 == STANDING_ALONE && time - self->time < hak_burst_ticks) {
        self->timed_from = self->head + BURST_EVENTS;
    }
    self->time = time;
    return time;
}

// Record one call, between enter and leave.
HAK_INLINE void hak_record(enum event_kind kind,
                           const void *block,
                           size_t bytes,
                           unsigned alignment_log2)
{
    struct recorder *self = &hak_recorder;
    const uint64_t head = self->head;
    if (HAK_UNLIKELY(head >= self->room_until || bytes >= EVENT_SIZE_MAX ||
                     self->standing != hak_load_relaxed(&hak_process->standing))) {
        hak_record_slow(kind, block, bytes, alignment_log2);
        return;
    }
    struct event *event = &self->events[head % RING_EVENTS];
    const uint64_t first = hak_event_first(kind, (uintptr_t)block, alignment_log2);
    if (head < self->timed_from) {
        event->first = first | EVENT_UNTIMED;
        event->second = bytes;
    } else {
        event->first = first;
        event->second = hak_event_second(bytes, hak_recorder_ask_time(self));
    }
    self->head = head + 1;
    hak_store_release(&self->ring->head, head + 1); // pairs with: the collector's take
}

#endif
