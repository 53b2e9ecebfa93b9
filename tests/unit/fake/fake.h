// fake.h -- an operating system that does what a test says.
//
// It replaces linux.c and the other files that implement os/os.h, in unit tests and in fuzzers that want it.
//
// Memory is real, but refused on request; time, the kernel's settings and random numbers are
// what the test sets; every call is counted. No threads are started: the test calls their work.
#ifndef HAK_TESTS_FAKE_H
#define HAK_TESTS_FAKE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

struct hak_fake_file {
    const char *path;
    const char *text;
};

// Content that hak_os_map_file returns in place, so that a sanitizer sees a read beyond its end.
struct hak_fake_content {
    const char *path;
    const void *bytes;
    size_t length;
};

struct hak_fake {
    // What a test sets. An "ask" is a call that requests memory: map, reserve, commit and remap.
    _Atomic(size_t) fail_first; // the first ask to refuse, counted by `asks` from 1
    size_t fail_times;
    bool refuse_collapse;      // hak_os_collapse
    uint64_t collapse_ns;      // what it takes
    void (*on_collapse)(void); // called by it
    bool refuse_asks;          // refuse all asks
    // The same for all calls that the kernel may refuse: asks, unmap, purge, the barrier, a thread.
    _Atomic(size_t) refuse_first; // the first call to refuse, counted by `calls` from 1
    size_t refuse_times;
    uint64_t refuse_one_in; // one call of this many is refused at random; 0: none
    size_t budget_bytes;    // the most that may be mapped at a time
    bool is_guessing;       // vm.overcommit_memory=0
    bool refuse_hints;      // a mapping never gets the requested address
    bool refuse_unmap;
    bool refuse_purge;
    bool refuse_guard;
    bool refuse_unguard;
    bool refuse_remap; // in place; moving works
    bool refuse_barrier;
    bool is_alone; // the process has one thread
    bool refuse_thread;
    uint64_t processor_ns;
    _Atomic(uint64_t) now_ns;
    uint64_t touch_ns; // how far each look advances the clock
    uint64_t random;
    int process_id;
    size_t page_bytes;
    size_t resident_bytes;
    size_t address_limit;
    size_t data_limit;
    size_t memory_bytes;
    size_t swap_bytes;
    size_t free_swap_bytes;
    unsigned processors;
    const struct hak_fake_file *files;       // the last one has no path; NULL: no files
    const struct hak_fake_content *contents; // the last one has no path; NULL: none
    const char *kept[4];                     // paths of the files that are kept open, by number
    unsigned kept_count;
    const char *event_path; // the file that can be watched; NULL: none
    bool event_came;        // and was not noticed yet
    bool event_ends;        // the watch ends with it
    bool grants_huge;
    void (*on_barrier)(void);    // what other threads do before they pass the barrier
    void (*on_map)(void *place); // of hak_os_map_at
    void (*on_purge)(void *start, size_t bytes);
    void (*on_unmap)(void *start, size_t bytes);
    void (*on_wait)(void);
    bool (*on_look)(const void *address); // can it be read? NULL: all but NULL can
    jmp_buf *death;                       // where to go instead of aborting

    // What a test reads.
    _Atomic(const void *) waited_on; // the latest word
    _Atomic(size_t) wakes;
    _Atomic(size_t) asks;
    _Atomic(size_t) calls;
    _Atomic(size_t) refusals; // calls refused by the three fields above
    _Atomic(size_t) maps;
    _Atomic(size_t) commits;
    _Atomic(size_t) unmaps;
    _Atomic(size_t) purges;        // of these ranges, also those in batches
    _Atomic(size_t) purge_batches; // hak_os_purge_ranges
    _Atomic(size_t) lazy_purges;   // hak_os_purge_lazily
    _Atomic(size_t) purged_bytes;
    _Atomic(size_t) barriers;
    _Atomic(size_t) file_reads;
    _Atomic(size_t) huge_asks;     // hak_os_want_huge(…, true)
    _Atomic(size_t) huge_refusals; // hak_os_want_huge(…, false)
    _Atomic(size_t) collapses;     // hak_os_collapse
    _Atomic(size_t) table_drops;   // hak_os_drop_page_tables
    _Atomic(size_t) thread_starts;
    bool blocks_signals;          // the answer to: may this be a signal handler?
    _Atomic(size_t) mapped_bytes; // by map, reserve and remap
    void (*work)(void);           // of the thread that was started last
    char request[64];             // what was written to the watched file
    size_t request_bytes;
    char printed[512];
    size_t printed_bytes;
};

HAK_INTERNAL extern struct hak_fake hak_fake;

// Refuse `times` asks, the first of them the `count`-th from now on (1: the next one).
HAK_INTERNAL void hak_fake_fail_in(size_t count, size_t times);

#endif
