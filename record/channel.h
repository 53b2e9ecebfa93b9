// channel.h -- the memory that recorded programs share with `hakmem record`.
//
// Owns      nothing: the collector (cli/trace/src/collector.rs) makes it, programs map it.
// Threads   a ring has one writer, its thread, and one reader, the collector.
//
// It outlives the programs: the events that a thread has published stay in it however the program is
// killed, and the collector writes them to the trace. cli/trace/src/channel.rs has the same layout;
// both come from one build, and `version` says so.
#ifndef HAK_RECORD_CHANNEL_H
#define HAK_RECORD_CHANNEL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define CHANNEL_MAGIC   UINT64_C(0x314e414843524b48) // "HKRCHAN1"
#define CHANNEL_VERSION 5

#define CHANNEL_PROCESSES 1024 // live at one time
#define CHANNEL_RINGS     512  // at most; fewer where the address space is limited (RLIMIT_AS)
// The last of them are for threads that find no other ring: those of a process share one.
#define CHANNEL_SHARED_RINGS 32
#define RING_WORDS           65536 // 512 KiB a ring: a millisecond of the fastest program
#define PROGRAM_CHARS        224

// Where the parts lie in the mapping. Its length is the file's.
#define CHANNEL_PROCESSES_AT UINT64_C(4096)
#define CHANNEL_RINGS_AT     (CHANNEL_PROCESSES_AT + CHANNEL_PROCESSES * sizeof(struct process_entry))
#define CHANNEL_WORDS_AT     (CHANNEL_RINGS_AT + CHANNEL_RINGS * sizeof(struct ring))

struct channel {
    uint64_t magic;
    uint32_t version;
    uint32_t stack_frames;          // how many to record with each event; 0: no stacks
    uint32_t use_clock;             // the processor's counter cannot be trusted: CLOCK_MONOTONIC
    int32_t collector;              // its process id
    uint32_t rings;                 // how many there are
    uint64_t burst_ticks;           // events less than this apart may come without times
    _Atomic(uint32_t) is_stopped;   // by the collector: record no more
    _Atomic(uint32_t) next_process; // numbers of processes
    _Atomic(uint32_t) collector_sleeps; // a futex: 1 while it waits for work
    _Atomic(uint32_t) processes_missed; // found no free entry, and are not recorded
    _Atomic(uint64_t) events_missed;    // found no free ring
};

enum process_state { PROCESS_FREE, PROCESS_BEGINS, PROCESS_LIVE, PROCESS_KNOWN };

// A recorded program. An exec makes a new entry with the same id.
struct process_entry {
    _Atomic(uint32_t) state; // enum process_state; KNOWN is set by the collector, a futex
    int32_t id;
    uint32_t number;
    uint32_t parent; // the number of the process that forked it; 0 after an exec
    uint64_t start;  // time of its first event
    uint64_t unused;
    char program[PROGRAM_CHARS];
};

enum ring_state { RING_FREE, RING_TAKEN, RING_CLOSED };

// A thread's events on their way to the collector. `head` and `tail` count words and never wrap.
//
//   tail <= head <= tail + RING_WORDS
struct ring {
    _Atomic(uint32_t) state; // enum ring_state; FREE is set by the collector
    uint32_t process;        // number
    uint32_t thread;         // number within the process; 0: several, each event says whose
    int32_t id;              // of the thread
    HAK_ALIGNED(64) _Atomic(uint64_t) head; // by the thread: published up to here
    HAK_ALIGNED(64) _Atomic(uint64_t) tail; // by the collector: taken up to here
    _Atomic(uint32_t) writer_waits;         // a futex: 1 while the thread waits for room
};

enum event_kind {
    EVENT_MALLOC = 1,
    EVENT_CALLOC,
    EVENT_ALIGNED,
    EVENT_FREE,
    EVENT_REALLOC_FROM, // a realloc begins: the old block
    EVENT_REALLOC_TO,   // it has ended: the new block and its size
    // These precede a long event and belong to it:
    EVENT_SIZE = 16, // second word: a size that has no room in the event
    EVENT_STACK,     // address: the number of the call stack
    EVENT_THREAD,    // address: the number of the thread, in a ring of several
    EVENT_NEW_STACK, // address: its number; alignment: how many frames (places) follow, two a pair
    // This stands alone: a file with code of stacks (stacks/code.h).
    EVENT_CODE, // address: its number; second word: how many words follow
};

// These follow EVENT_CODE: start, end, hash of the file's head; kind, length of the build id and length of the path in 16,
// 16 and 32 bits; the build id; the path. Zeros fill the last word of the build id, and that of the path.
#define CODE_WORDS      4
#define CODE_PATH_BYTES 8192 // longer ones are left out

// An event is one word if it has the time of the event before, and its values fit:
//
//   size in bits 0 to 15, eighths of the address from 16, kind from 61
//
// With 0 in place of the kind there are two words:
//
//   first    address in bits 0 to 47, log2 of the alignment from 48, kind in bits 56 to 60
//   second   size in bits 0 to 23 (all ones: EVENT_SIZE has it), low bits of the time from 24
#define SHORT_SIZE_BITS 16
#define SHORT_UNIT_LOG2 3
#define SHORT_KIND_AT   61
// An address with one of these bits does not fit a short event.
#define SHORT_ADDRESS_NOT (UINT64_C(0xffff) << 48 | ((UINT64_C(1) << SHORT_UNIT_LOG2) - 1))

struct long_event {
    uint64_t first;
    uint64_t second;
};

#define EVENT_SIZE_BITS 24
#define EVENT_SIZE_MAX  ((UINT64_C(1) << EVENT_SIZE_BITS) - 1)
// Ticks of the processor's counter are finer than two events can be apart.
#define EVENT_TIME_SHIFT 4
// While a process has one thread, no times are needed to order its events. Reading the clock costs more than
// writing an event, so of this many events that come fast only the first gets a time.
#define BURST_EVENTS 32

HAK_INLINE uint64_t first_word(enum event_kind kind, uint64_t address, unsigned alignment_log2)
{
    return (address & 0xffffffffffff) | (uint64_t)alignment_log2 << 48 | (uint64_t)kind << 56;
}

HAK_INLINE uint64_t second_word(uint64_t bytes, uint64_t time)
{
    return bytes | time >> EVENT_TIME_SHIFT << EVENT_SIZE_BITS;
}

_Static_assert(sizeof(struct process_entry) == 256, "as cli/trace/src/channel.rs has it");
_Static_assert(sizeof(struct ring) == 192, "as cli/trace/src/channel.rs has it");
_Static_assert(sizeof(struct channel) <= CHANNEL_PROCESSES_AT, "the first page");

#endif
