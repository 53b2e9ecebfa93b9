// os.h -- the contract with the operating system.
//
// Owns      every system call the allocator makes.
// Threads   any thread, at any time, also before the C library is ready: nothing here touches errno,
//           thread-local storage or stdio, but for functions of others that listen (heard.h).
// Fails     as each function says; never by abort.
//
// linux.c, clock.c, guards.c, machine.c, file.c and thread.c implement it; tests/unit/fake/ implements it for unit tests, with a
// clock that a test sets and memory that fails when told.
#pragma once

#include "base/compiler.h"

// System calls of ours since the start.
struct hak_os_counts {
    _Atomic(uint64_t) maps;
    _Atomic(uint64_t) unmaps;
    _Atomic(uint64_t) remaps;
    _Atomic(uint64_t) purges;
    _Atomic(uint64_t) purged_bytes; // given back, resident or not
    _Atomic(uint64_t) huge_advices;
    _Atomic(uint64_t) refused; // of all these
};
HAK_INTERNAL extern struct hak_os_counts hak_os_counts;

// Once, before the program's main, while it has one thread: what the kernel offers and may be asked for only then. Until
// then, and where it never comes to that, the functions below do without. False when functions of the C library cannot be called
// yet, as a sanitizer has its own in front of them.
HAK_INTERNAL HAK_MUST_USE bool hak_os_start(void);
// Its parts.
HAK_INTERNAL void hak_os_find_clock(void);
HAK_INTERNAL void hak_os_find_threads(void);

// Bytes of a page: 4, 16 or 64 KiB, read from the kernel at run time.
HAK_INTERNAL size_t hak_os_page_bytes(void);

// Map fresh zero pages, wherever the kernel likes. NULL when it refuses.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map(size_t bytes);
// Map them exactly at `place`. NULL when the kernel refuses: `*is_taken` says that something else lies there, so
// that another place may do; else there is no memory, or there are no such addresses.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map_at(void *place, size_t bytes, bool *is_taken);

// Reserve `bytes` of addresses that read as zero, cost no commit and become
// writable piece by piece with hak_os_commit, each once and by one thread. NULL when refused.
HAK_INTERNAL HAK_MUST_USE void *hak_os_reserve(size_t bytes);
HAK_INTERNAL HAK_MUST_USE bool hak_os_commit(void *start, size_t bytes);
// Let them be written to, as they are: others may have done so before, or be at it.
HAK_INTERNAL HAK_MUST_USE bool hak_os_unseal(void *start, size_t bytes);
// Let nobody write there any more. Where the kernel refuses, it stays as it is: a protection that is missed, and
// nothing else depends on it.
HAK_INTERNAL void hak_os_seal(void *start, size_t bytes);

// Let nobody touch them any more, or from now on again: then they read as zero, if they were given back before. False, and
// nothing changed, when the kernel refuses. Where it has guard regions (Linux 6.13) they take none of its mappings;
// elsewhere each border between the two kinds takes one.
HAK_INTERNAL HAK_MUST_USE bool hak_os_guard(void *start, size_t bytes);
HAK_INTERNAL HAK_MUST_USE bool hak_os_unguard(void *start, size_t bytes);
// So many mappings do two guards take, as far as is known: none, or two.
HAK_INTERNAL unsigned hak_os_guard_mappings(void);
// As hak_os_map, anywhere, with a page before and a page behind that nobody can touch; or none, where the
// kernel refuses those.
HAK_INTERNAL HAK_MUST_USE void *hak_os_map_guarded(size_t bytes);

// Give addresses back. False when the kernel refuses (max_map_count): the pages
// are then still mapped and still ours.
HAK_INTERNAL HAK_MUST_USE bool hak_os_unmap(void *start, size_t bytes);

// The same for what is of no use any more, whatever the kernel says: where it refuses, the pages at least go, and the
// addresses are lost.
HAK_INTERNAL void hak_os_discard(void *start, size_t bytes);

// Give pages back and keep the addresses; they read as zero afterwards.
// False when the kernel refuses (locked pages): their content is then undefined.
HAK_INTERNAL HAK_MUST_USE bool hak_os_purge(void *start, size_t bytes);

struct hak_range {
    void *start;
    size_t bytes;
};

// The same for up to 64 ranges, with one system call where the kernel has one for that (process_madvise on
// oneself, Linux 6.13). Returns a bit for each range that was given back.
enum { HAK_RANGES_MAX = 64 };
HAK_INTERNAL HAK_MUST_USE uint64_t hak_os_purge_ranges(const struct hak_range *ranges,
                                                       unsigned count);
// Let the kernel take the pages of a range when it needs some: until they are written again they hold
// what they held, or zeros.
HAK_INTERNAL HAK_MUST_USE bool hak_os_purge_lazily(void *start, size_t bytes);

// Fill with zeros, without writing to pages that are zeros: those that are not there stay so. `start` is at a page boundary.
HAK_INTERNAL void hak_os_clear(void *start, size_t bytes);
// Copy to where all reads as zero, and write nothing there that is zeros.
HAK_INTERNAL void hak_os_copy(void *target, const void *source, size_t bytes);

// Grow or shrink a mapping, moving it to `target`, whose own mapping it replaces, or in place when
// `target` is NULL. Returns the new start. NULL: nothing has changed, but the target's own mapping may
// be gone.
HAK_INTERNAL HAK_MUST_USE void *hak_os_remap(void *start,
                                             size_t old_bytes,
                                             size_t bytes,
                                             void *target);

// Read a file of the kernel's, at most `bytes` - 1 characters of it, and end it with a 0. Returns
// its length; 0 when it cannot be read, which a pipe that nobody writes cannot.
HAK_INTERNAL size_t hak_os_read_file(const char *path, char *text, size_t bytes);

// A file that is held open. The program may close it, and open another one that gets its number.
struct hak_held_file {
    int file; // its number; -1: none
    bool is_regular;
    uint64_t device, inode; // which file it is
};

// Hold such a file open for the life of the process, to read it from its beginning time and again: a system
// call less than opening it, and a program that counts on the number of the next file that it opens is not
// disturbed, if this is done before its main. None when it cannot be read.
HAK_INTERNAL HAK_MUST_USE struct hak_held_file hak_os_hold_file(const char *path);
// The same for one that is open (or -errno): under another number, and no longer under this one.
HAK_INTERNAL HAK_MUST_USE struct hak_held_file hak_os_hold(long file);
// Is it still the file that has this number? In a child that shares our memory, and no files, it may be another: so this is asked
// before each use, and nothing is noted.
HAK_INTERNAL HAK_MUST_USE bool hak_os_is_held(const struct hak_held_file *held);
// As hak_os_read_file, if it is. A moment later the program may close it: who reads has to know the text when he sees it.
HAK_INTERNAL size_t hak_os_read_held(const struct hak_held_file *held, char *text, size_t bytes);

// How many lines such a file has.
HAK_INTERNAL size_t hak_os_count_lines(const char *path);
// Map a whole file for reading, or NULL when it cannot be read or is empty. hak_os_unmap ends it.
HAK_INTERNAL HAK_MUST_USE const void *hak_os_map_file(const char *path, size_t *bytes);

// The machine's memory, SIZE_MAX when unknown, and that with its swap space, both at the first call; what of that space is free
// now; and its processors that this process may run on, at least 1, at the first call.
HAK_INTERNAL size_t hak_os_memory_bytes(void);
HAK_INTERNAL size_t hak_os_memory_and_swap_bytes(void);
HAK_INTERNAL size_t hak_os_free_swap_bytes(void);
HAK_INTERNAL unsigned hak_os_processors(void);

// Bytes of this process that are resident; 0 when that cannot be read.
HAK_INTERNAL size_t hak_os_resident_bytes(void);

// Processor time of all its threads since the start, and page faults that needed no file read. Less than before after
// a fork, and 0 when the kernel does not tell.
HAK_INTERNAL void hak_os_usage(uint64_t *processor_ns, uint64_t *faults);
// What such a sum has gained, or another of the kernel's that begins again at 0.
HAK_INLINE uint64_t hak_os_gained(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

// The same of one of its threads, by the kernel's number of it. False when it has ended.
HAK_INTERNAL HAK_MUST_USE bool hak_os_thread_usage(int thread,
                                                   uint64_t *processor_ns,
                                                   uint64_t *faults);

enum hak_huge_pages { HAK_HUGE_NEVER, HAK_HUGE_MADVISE, HAK_HUGE_ALWAYS };

// The kernel's transparent huge page setting.
HAK_INTERNAL enum hak_huge_pages hak_os_huge_pages(void);
// Free the page tables of a range that was given back, in parts: where one is left, a touch gets a small page whatever was asked
// for. Linux does so from 6.14 on (CONFIG_PT_RECLAIM), for tables that lie in the range as a whole. A hint.
HAK_INTERNAL void hak_os_drop_page_tables(void *start, size_t bytes);
// Ask for huge pages in a range, or ask to be spared them. A hint.
HAK_INTERNAL void hak_os_want_huge(void *start, size_t bytes, bool wanted);

// Can the 8 bytes at `address` be read without a fault?
HAK_INTERNAL HAK_MUST_USE bool hak_os_can_read(const void *address);

// Is the word there, and not zero? Without a fault, whatever the address.
HAK_INTERNAL HAK_MUST_USE bool hak_os_has_content(const void *word);

// Nanoseconds of a clock that never goes back. All clocks show 0 when the kernel does not tell. The first asks the processor,
// which a program may have forbidden (PR_SET_TSC): it is for what an option switches on. The second reads what the kernel
// wrote at its last tick, HAK_OS_TICK_NS ago at most on most systems, 10 ms on some; it costs less than ten nanoseconds.
#define HAK_OS_TICK_NS UINT64_C(4000000)
HAK_INTERNAL uint64_t hak_os_now_ns(void);
HAK_INTERNAL uint64_t hak_os_about_now_ns(void);
// Is that time still to come? It is `most` away at most: what is further away is a time of another clock, as the child of a fork
// may have one that is behind its parent's (time_namespaces(7)).
HAK_INLINE bool hak_os_is_soon(uint64_t now, uint64_t time, uint64_t most)
{
    return time - now - 1 < most;
}
// Processor time of a thread, by the kernel's number of it.
HAK_INTERNAL uint64_t hak_os_processor_ns(int thread);
// Nanoseconds since 1970, as the clock on the wall, at the last tick.
HAK_INTERNAL uint64_t hak_os_date_ns(void);
// RLIMIT_AS and RLIMIT_DATA of the process; SIZE_MAX when there is none.
HAK_INTERNAL size_t hak_os_address_limit(void);
HAK_INTERNAL size_t hak_os_data_limit(void);
// 64 bits that an attacker and another process cannot guess; best effort.
HAK_INTERNAL uint64_t hak_os_random(void);
HAK_INTERNAL int hak_os_process_id(void);
// The kernel's number of the calling thread.
HAK_INTERNAL int hak_os_thread_id(void);
// What no other thread has at the same time.
HAK_INTERNAL uintptr_t hak_os_thread_mark(void);
// Is the calling thread the only one, as far as the C library knows?
HAK_INTERNAL bool hak_os_is_alone(void);

// Sleep while *word == expected, at most `ms` milliseconds (0: no limit), until woken; and wake the one that has slept
// on the word for the longest. A wait may also end before its time, whatever the reason: who waits looks again. Where the
// kernel refuses to wait for a word, it sleeps without one, a millisecond at most.
HAK_INTERNAL void hak_os_wait(_Atomic(uint32_t) *word, uint32_t expected, unsigned ms);
HAK_INTERNAL void hak_os_wake(_Atomic(uint32_t) *word);
// The same without a limit for those who have a number: wake all of that number modulo 32.
HAK_INTERNAL void hak_os_wait_numbered(_Atomic(uint32_t) *word, uint32_t expected, uint32_t number);
HAK_INTERNAL void hak_os_wake_numbered(_Atomic(uint32_t) *word, uint32_t number);

// Make every running thread of the process pass a full memory barrier. False
// when the kernel cannot do that.
HAK_INTERNAL HAK_MUST_USE bool hak_os_barrier_all(void);

// Run `work` in a thread of its own, one at a time, in which all signals are blocked. False when it cannot be started. And
// wait until it has ended.
HAK_INTERNAL HAK_MUST_USE bool hak_os_start_thread(void (*work)(void));
// May the calling thread be in a signal's handler, in which one could be started? There the handler's signal is blocked.
HAK_INTERNAL HAK_MUST_USE bool hak_os_may_be_in_handler(void);
HAK_INTERNAL void hak_os_join_thread(void);
// Has the process no thread but this one? False when the kernel does not tell.
HAK_INTERNAL bool hak_os_has_one_task(void);

// The calling thread ends: what it has written to, its stack, may be memory of ours next. For ThreadSanitizer, which sees
// neither the C library unmap it nor us map it.
HAK_INTERNAL void hak_os_thread_ends(void);

// Write to stderr: all of it, as far as that takes it.
HAK_INTERNAL void hak_os_print(const char *text, size_t length);
// Write to the end of a file that is made if need be. False when not all of it could be written.
HAK_INTERNAL HAK_MUST_USE bool hak_os_append(const char *path, const char *text, size_t length);
// The same, and say on stderr when not: the program was asked to keep it.
HAK_INTERNAL void hak_os_append_or_say(const char *path, const char *text, size_t length);
HAK_INTERNAL _Noreturn void hak_os_abort(void);
