// os.h -- the contract with the operating system.
//
// Owns      every system call the allocator makes.
// Threads   any thread, at any time, also before the C library is ready: nothing here touches errno,
//           thread-local storage or stdio, except the functions of a listener (heard.h).
// Fails     as each function says; never by abort.
//
// The .c files of this folder implement it. tests/unit/fake/ implements it for unit tests, with a clock that a test sets and
// memory that fails when told.
#pragma once

#include "base/compiler.h"

// The system calls that we have made since the start.
struct hak_os_counts {
    _Atomic(uint64_t) maps;
    _Atomic(uint64_t) unmaps;
    _Atomic(uint64_t) remaps;
    _Atomic(uint64_t) purges;
    _Atomic(uint64_t) purged_bytes; // given back, resident or not
    _Atomic(uint64_t) huge_advices;
    _Atomic(uint64_t) refused; // of all these calls
};
HAK_INTERNAL extern struct hak_os_counts hak_os_counts;

// Ask what the kernel offers. Called once, before the program's main, while the process has one thread; the functions below also
// work without it. False when functions of the C library cannot be called yet, because a sanitizer's stand in front of them.
HAK_INTERNAL HAK_MUST_USE bool hak_os_start(void);
// The parts of hak_os_start.
HAK_INTERNAL void hak_os_find_clock(void);
HAK_INTERNAL void hak_os_find_threads(void);

// Bytes of a page: 4, 16 or 64 KiB, read from the kernel at run time.
HAK_INTERNAL size_t hak_os_page_bytes(void);

// Map fresh zero pages, wherever the kernel likes. NULL when it refuses.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map(size_t bytes);
// The same, exactly at `place`. NULL when the kernel refuses. If `*is_taken`, something else is mapped there, and another place
// may do; if not, there is no memory, or the process has no such addresses.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map_at(void *place, size_t bytes, bool *is_taken);

// Reserve `bytes` of addresses. They read as zero and are not charged as committed memory. hak_os_commit makes them writable,
// piece by piece: each piece once, by one thread. NULL when the kernel refuses.
HAK_INTERNAL HAK_MUST_USE void *hak_os_reserve(size_t bytes);
HAK_INTERNAL HAK_MUST_USE bool hak_os_commit(void *start, size_t bytes);
// Would the kernel grant `bytes` if they were not charged? Then it overcommits by a guess (vm.overcommit_memory=0): where it allows
// all, nothing is charged, and where it counts, all is (Documentation/mm/overcommit-accounting.rst). The answer needs no file.
HAK_INTERNAL bool hak_os_grants_uncommitted(size_t bytes);
// Make pages writable and keep their content. Other threads may have done so before, or do so at the same time.
HAK_INTERNAL HAK_MUST_USE bool hak_os_unseal(void *start, size_t bytes);
// Make pages read-only. If the kernel refuses, they stay writable: a protection is missing, and nothing depends on it.
HAK_INTERNAL void hak_os_seal(void *start, size_t bytes);

// Make pages inaccessible, or accessible again; then they read as zero if they were purged before. False when the kernel
// refuses: nothing has changed. Guard regions (Linux 6.13) take no mappings. In older kernels, each border between accessible
// and inaccessible pages takes one.
HAK_INTERNAL HAK_MUST_USE bool hak_os_guard(void *start, size_t bytes);
HAK_INTERNAL HAK_MUST_USE bool hak_os_unguard(void *start, size_t bytes);
// How many mappings two guards take, as far as is known: none, or two.
HAK_INTERNAL unsigned hak_os_guard_mappings(void);
// As hak_os_map, with an inaccessible page before it and one behind it; without these two if the kernel refuses them.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map_guarded(size_t bytes);

// Release addresses. False when the kernel refuses (max_map_count): the pages are then still mapped and still ours.
HAK_INTERNAL HAK_MUST_USE bool hak_os_unmap(void *start, size_t bytes);

// The same for addresses that nobody needs any more. If the kernel refuses, the pages are purged and the addresses are lost.
HAK_INTERNAL void hak_os_discard(void *start, size_t bytes);

// Purge pages: give them back and keep the addresses, which read as zero afterwards.
// False when the kernel refuses (locked pages): their content is then undefined.
HAK_INTERNAL HAK_MUST_USE bool hak_os_purge(void *start, size_t bytes);

struct hak_range {
    void *start;
    size_t bytes;
};

// The same for up to 64 ranges, with one system call if the kernel has one for that (process_madvise on the own process,
// Linux 6.13). Returns a bit for each range that was purged.
enum { HAK_RANGES_MAX = 64 };
HAK_INTERNAL HAK_MUST_USE uint64_t hak_os_purge_ranges(const struct hak_range *ranges,
                                                       unsigned count);
// Let the kernel take the pages of a range when it needs memory (MADV_FREE). Until a page is written again, it holds its old
// content or zeros.
HAK_INTERNAL HAK_MUST_USE bool hak_os_purge_lazily(void *start, size_t bytes);

// Fill with zeros, but do not write to pages of zeros: untouched pages stay untouched. `start` is at a page boundary.
HAK_INTERNAL void hak_os_clear(void *start, size_t bytes);
// Copy to a target that reads as zero. Zeros are not written.
HAK_INTERNAL void hak_os_copy(void *target, const void *source, size_t bytes);

// Grow or shrink a mapping. It moves to `target` and replaces the mapping there; if `target` is NULL, it stays in place.
// Returns the new start. NULL: nothing has changed, except that the mapping at `target` may be gone.
HAK_INTERNAL HAK_MUST_USE void *hak_os_remap(void *start,
                                             size_t old_bytes,
                                             size_t bytes,
                                             void *target);

// Read at most `bytes` - 1 characters of a file of the kernel, and put a 0 behind them. Returns their number; 0 when the file
// cannot be read, or is a pipe that nobody writes.
HAK_INTERNAL size_t hak_os_read_file(const char *path, char *text, size_t bytes);

// A file that is held open. The program may close it, and open another file that gets the same number.
struct hak_held_file {
    int file; // its number; -1: none
    bool is_regular;
    uint64_t device, inode; // which file it is
};

// Open a file for the life of the process, to read it from its beginning many times without opening it each time. Before the
// program's main, this does not change the numbers of the files that the program opens. None when it cannot be read.
HAK_INTERNAL HAK_MUST_USE struct hak_held_file hak_os_hold_file(const char *path);
// The same for an open file (or -errno). It gets another number, and this one is closed.
HAK_INTERNAL HAK_MUST_USE struct hak_held_file hak_os_hold(long file);
// Does the number still belong to this file? In a child that shares our memory but not our files, it may belong to another one.
// So this is asked before each use, and the answer is not stored.
HAK_INTERNAL HAK_MUST_USE bool hak_os_is_held(const struct hak_held_file *held);
// As hak_os_read_file, if it does. The program may close the file meanwhile, so the caller has to check the text.
HAK_INTERNAL size_t hak_os_read_held(const struct hak_held_file *held, char *text, size_t bytes);

// How many lines a file of the kernel has.
HAK_INTERNAL size_t hak_os_count_lines(const char *path);
// Map a whole file for reading, or NULL when it cannot be read or is empty. hak_os_unmap unmaps it.
HAK_INTERNAL HAK_MUST_USE const void *hak_os_map_file(const char *path, size_t *bytes);

// The machine's memory, without and with its swap space, as they were at the first call; SIZE_MAX when unknown. The swap space
// that is free now. The processors that this process could run on at the first call, at least 1.
HAK_INTERNAL size_t hak_os_memory_bytes(void);
HAK_INTERNAL size_t hak_os_memory_and_swap_bytes(void);
HAK_INTERNAL size_t hak_os_free_swap_bytes(void);
HAK_INTERNAL unsigned hak_os_processors(void);

// Bytes of this process that are resident; 0 when that cannot be read.
HAK_INTERNAL size_t hak_os_resident_bytes(void);

// Processor time of all threads of the process since the start, and its minor page faults. Both begin again at 0 after a fork,
// and are 0 when the kernel does not tell.
HAK_INTERNAL void hak_os_usage(uint64_t *processor_ns, uint64_t *faults);
// How much such a sum has grown; 0 if it began again meanwhile and is still smaller.
HAK_INLINE uint64_t hak_os_gained(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

// As hak_os_usage for one thread, given by the kernel's number of it. False when it has ended.
HAK_INTERNAL HAK_MUST_USE bool hak_os_thread_usage(int thread,
                                                   uint64_t *processor_ns,
                                                   uint64_t *faults);

// Does memory get transparent huge pages if it asks for them, by the kernel's setting?
HAK_INTERNAL bool hak_os_grants_huge(void);
// Free the page tables of a range that was purged in parts. Where a table is left, a touch gets a small page, even if huge pages
// were asked for. From 6.14 on (CONFIG_PT_RECLAIM), Linux frees the tables that lie wholly in the range. A hint.
HAK_INTERNAL void hak_os_drop_page_tables(void *start, size_t bytes);
// Ask for huge pages in a range, or for none. A hint.
HAK_INTERNAL void hak_os_want_huge(void *start, size_t bytes, bool wanted);
// Make huge pages of the small ones in a range of whole huge pages; their content stays, and the range asks for huge pages from
// then on. False if the kernel cannot (before Linux 6.1) or has no huge page: then the range asks for small ones.
HAK_INTERNAL HAK_MUST_USE bool hak_os_collapse(void *start, size_t bytes);

// Can the 8 bytes at `address` be read without a fault?
HAK_INTERNAL HAK_MUST_USE bool hak_os_can_read(const void *address);

// Can the word be read, and is it not zero? This never faults, whatever the address.
HAK_INTERNAL HAK_MUST_USE bool hak_os_has_content(const void *word);

// Nanoseconds of a clock that never goes back. All clocks show 0 when the kernel does not tell. The first function reads the
// processor's counter, which a program may have forbidden (PR_SET_TSC): it is for what an option switches on. The second reads
// what the kernel wrote at its last tick, at most HAK_OS_TICK_NS ago on most systems, 10 ms on some; it costs less than ten
// nanoseconds.
#define HAK_OS_TICK_NS UINT64_C(4000000)
HAK_INTERNAL uint64_t hak_os_now_ns(void);
HAK_INTERNAL uint64_t hak_os_about_now_ns(void);
// Is `time` in the future, by `most` at most? A time that is further away comes from another clock: the clock of a fork's child
// may be behind its parent's (time_namespaces(7)).
HAK_INLINE bool hak_os_is_soon(uint64_t now, uint64_t time, uint64_t most)
{
    return time - now - 1 < most;
}
// Processor time of a thread, given by the kernel's number of it.
HAK_INTERNAL uint64_t hak_os_processor_ns(int thread);
// Nanoseconds since 1970, as of the kernel's last tick.
HAK_INTERNAL uint64_t hak_os_date_ns(void);
// RLIMIT_AS and RLIMIT_DATA of the process; SIZE_MAX when there is none.
HAK_INTERNAL size_t hak_os_address_limit(void);
HAK_INTERNAL size_t hak_os_data_limit(void);
// 64 bits that an attacker and another process cannot guess; best effort.
HAK_INTERNAL uint64_t hak_os_random(void);
HAK_INTERNAL int hak_os_process_id(void);
// The kernel's number of the calling thread. May call the C library, and so a tool's function in front of it: without a lock of ours.
HAK_INTERNAL int hak_os_thread_id(void);
// A value that no other thread has at the same time.
HAK_INTERNAL uintptr_t hak_os_thread_mark(void);
// Is the calling thread the only one, as far as the C library knows?
HAK_INTERNAL bool hak_os_is_alone(void);

// Sleep while *word == expected, until woken, for `ms` milliseconds at most (0: no limit); wake the thread that has slept on the
// word for the longest. A wait may end early, so the caller looks at the word again. If the kernel refuses to wait for a word,
// the thread sleeps for `ms` milliseconds (0: one).
HAK_INTERNAL void hak_os_wait(_Atomic(uint32_t) *word, uint32_t expected, unsigned ms);
HAK_INTERNAL void hak_os_wake(_Atomic(uint32_t) *word);
// The same without a limit, for threads that have a number: wake all whose number is the same modulo 32.
HAK_INTERNAL void hak_os_wait_numbered(_Atomic(uint32_t) *word, uint32_t expected, uint32_t number);
HAK_INTERNAL void hak_os_wake_numbered(_Atomic(uint32_t) *word, uint32_t number);

// Make every running thread of the process pass a full memory barrier. False when the kernel cannot do that.
HAK_INTERNAL HAK_MUST_USE bool hak_os_barrier_all(void);

// Run `work` in a thread of its own, in which all signals are blocked; one such thread at a time. False when it cannot be
// started. hak_os_join_thread waits until it has ended.
HAK_INTERNAL HAK_MUST_USE bool hak_os_start_thread(void (*work)(void));
// May the calling thread be in a signal handler (it has a blocked signal), and could a thread be started there?
HAK_INTERNAL HAK_MUST_USE bool hak_os_may_be_in_handler(void);
HAK_INTERNAL void hak_os_join_thread(void);
// Has the process no thread but this one? False when the kernel does not tell.
HAK_INTERNAL bool hak_os_has_one_task(void);

// The calling thread ends, and we may map the addresses of its stack next. This tells ThreadSanitizer, which sees neither the
// C library's munmap nor our mmap.
HAK_INTERNAL void hak_os_thread_ends(void);

// Write the path of the folder that relative paths start from. Returns its length, less than `bytes`; 0: it is not known.
HAK_INTERNAL size_t hak_os_folder(char *path, size_t bytes);
// Write to stderr, as much as it takes.
HAK_INTERNAL void hak_os_print(const char *text, size_t length);
// Append to a file, which is created if it does not exist. False when not all could be written.
HAK_INTERNAL HAK_MUST_USE bool hak_os_append(const char *path, const char *text, size_t length);
// The same, with a line on stderr when it fails: the user asked for this file.
HAK_INTERNAL void hak_os_append_or_say(const char *path, const char *text, size_t length);
HAK_INTERNAL _Noreturn void hak_os_abort(void);
