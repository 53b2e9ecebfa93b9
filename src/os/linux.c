// linux.c -- os.h on Linux.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/check.h"
#include "base/format.h"
#include "base/number.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/timing.h"
#include "os/heard.h"
#include "os/kernel.h"
#include "os/os.h"
#include "os/pause.h"
#include "os/proc.h"
#include "os/refusal.h"
#include "os/syscall.h"

// Newer than the C library's headers on some systems.
#ifndef MAP_FIXED_NOREPLACE
#    define MAP_FIXED_NOREPLACE 0x100000
#endif

struct hak_os_counts hak_os_counts;
#if HAK_TSAN
char hak_addresses;
#endif
#if HAK_DEBUG > 1
_Atomic(uint64_t) hak_looks;
#endif

static bool counted(_Atomic(uint64_t) *count, bool done)
{
    hak_add_relaxed(count, 1);
    if (!done) {
        hak_add_relaxed(&hak_os_counts.refused, 1);
    }
    return done;
}

size_t hak_os_page_bytes(void)
{
    static _Atomic(size_t) page_bytes;
    size_t bytes = hak_load_relaxed(&page_bytes);
    if (bytes == 0) {
        bytes = (size_t)getauxval(AT_PAGESZ);
        hak_store_relaxed(&page_bytes, bytes);
    }
    return bytes;
}

// Did a call get its memory?
static bool noted(long result, size_t bytes)
{
    if (!hak_syscall_failed(result)) {
        return true;
    }
    if (result != -EEXIST) { // no refusal: another place may do
        hak_refusal_note((int)-result, bytes);
    }
    return false;
}

// Name our mappings, for readers of /proc/PID/smaps. A mapping that is made before the options are known is named later: the
// dynamic linker's allocations take one superslab, descriptors and the map.
enum { EARLY_MAX = 16 };
enum { UNDECIDED, WANTED, UNWANTED };

static _Atomic(unsigned) naming;
// A reader takes a half-written entry for an empty range, and does not name it.
static struct {
    _Atomic(uintptr_t) start;
    _Atomic(size_t) bytes;
} early[EARLY_MAX];
static _Atomic(unsigned) early_count;

static void name(uintptr_t start, size_t bytes)
{
    static const char text[] = "hakmem";
    const long got = hak_syscall(
        SYS_prctl, HAK_PRCTL_VMA, HAK_PRCTL_VMA_NAME, (long)start, (long)bytes, (long)text, 0);
    // A kernel without CONFIG_ANON_VMA_NAME, or a sandbox: it is not asked again. After ENOMEM it is.
    if (got == -EINVAL || got == -EPERM || got == -ENOSYS) {
        hak_store_relaxed(&naming, UNWANTED);
    }
}

static void name_mapped(uintptr_t start, size_t bytes)
{
    const unsigned now = hak_load_relaxed(&naming);
    if (now == WANTED) {
        name(start, bytes);
    } else if (now == UNDECIDED) {
        const unsigned place = hak_add_relaxed(&early_count, 1);
        if (place < EARLY_MAX) {
            hak_store_relaxed(&early[place].bytes, bytes);
            hak_store_relaxed(&early[place].start, start);
        }
    }
}

// Once, when the options are known.
static void start_naming(void)
{
    const bool is_wanted = hak_load_relaxed(&hak_options.name_mappings) != 0;
    hak_store_relaxed(&naming, is_wanted ? WANTED : UNWANTED);
    for (unsigned i = 0; i < EARLY_MAX && hak_load_relaxed(&naming) == WANTED; i++) {
        const size_t bytes = hak_load_relaxed(&early[i].bytes);
        const uintptr_t start = hak_load_relaxed(&early[i].start);
        if (start != 0 && bytes != 0) {
            name(start, bytes);
        }
    }
}

// Returns the address, or the error number, negative.
static long map(void *place, size_t bytes, int protection, int extra_flags)
{
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS | extra_flags;
    const uint64_t begin = hak_timing_begin();
    const long got = hak_syscall(SYS_mmap, (long)place, (long)bytes, protection, flags, -1, 0);
    HAK_ADDRESSES_CAME();
    hak_timing_end(HAK_TIMING_map, begin);
    HAK_PROBE2("hakmem", "map", got, bytes);
    if (counted(&hak_os_counts.maps, noted(got, bytes))) {
        name_mapped((uintptr_t)got, bytes);
    }
    return got;
}

static void *mapped(long got)
{
    return hak_syscall_failed(got) ? NULL : (void *)got;
}

void *hak_os_map(size_t bytes)
{
    return mapped(map(NULL, bytes, PROT_READ | PROT_WRITE, 0));
}

void *hak_os_map_at(void *place, size_t bytes, bool *is_taken)
{
    const long got = map(place, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
    *is_taken = got == -EEXIST;
    if (!hak_syscall_failed(got) && (void *)got != place) {
        *is_taken = true; // a kernel before 4.17 takes the flag for a mere hint
        hak_os_discard((void *)got, bytes);
        return NULL;
    }
    return mapped(got);
}

void *hak_os_reserve(size_t bytes)
{
    return mapped(map(NULL, bytes, PROT_READ, MAP_NORESERVE));
}

bool hak_os_grants_uncommitted(size_t bytes)
{
    void *got = mapped(map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE));
    if (got != NULL) {
        hak_os_discard(got, bytes);
    }
    return got != NULL;
}

// A seccomp filter may refuse mprotect and allow mmap.
bool hak_os_commit(void *start, size_t bytes)
{
    return hak_syscall_protect(start, bytes, PROT_READ | PROT_WRITE) == 0 ||
           !hak_syscall_failed(map(start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED));
}

bool hak_os_unseal(void *start, size_t bytes)
{
    return noted(hak_syscall_protect(start, bytes, PROT_READ | PROT_WRITE), bytes);
}

void hak_os_seal(void *start, size_t bytes)
{
    HAK_UNHEEDED(hak_syscall_protect(start, bytes, PROT_READ));
}

bool hak_os_unmap(void *start, size_t bytes)
{
    const uint64_t begin = hak_timing_begin();
    HAK_ADDRESSES_GO();
    const long got = hak_heard_munmap(start, bytes);
    hak_timing_end(HAK_TIMING_unmap, begin);
    HAK_PROBE2("hakmem", "unmap", (uintptr_t)start, bytes);
    return counted(&hak_os_counts.unmaps, got == 0);
}

bool hak_os_purge(void *start, size_t bytes)
{
    const uint64_t begin = hak_timing_begin();
    const long got = hak_heard_madvise(start, bytes, MADV_DONTNEED);
    hak_timing_end(HAK_TIMING_purge, begin);
    HAK_PROBE2("hakmem", "purge", (uintptr_t)start, bytes);
    hak_add_relaxed(&hak_os_counts.purged_bytes, got == 0 ? bytes : 0);
    return counted(&hak_os_counts.purges, got == 0);
}

bool hak_os_purge_lazily(void *start, size_t bytes)
{
    const long got = hak_heard_madvise(start, bytes, MADV_FREE);
    hak_add_relaxed(&hak_os_counts.purged_bytes, got == 0 ? bytes : 0);
    return counted(&hak_os_counts.purges, got == 0);
}

// Purge ranges with one call. Returns how many bytes were purged, or the error, negative. It opens no file for the process: the
// program may close all files at any time, and use their numbers for another process.
static long purge_together(const struct hak_range *ranges, unsigned count)
{
    _Static_assert(sizeof(struct hak_range) == sizeof(struct iovec) &&
                       offsetof(struct hak_range, bytes) == offsetof(struct iovec, iov_len),
                   "what the kernel reads");
    return hak_syscall(
        SYS_process_madvise, HAK_THIS_PROCESS, (long)ranges, count, MADV_DONTNEED, 0, 0);
}

// Listeners do not hear process_madvise. A kernel that does not support it (ENOSYS), or not without a file (EBADF), is not asked
// again, nor is a filter that refuses it (EPERM).
uint64_t hak_os_purge_ranges(const struct hak_range *ranges, unsigned count)
{
    static _Atomic(bool) is_unknown;
    long got = 0;
    if (count >= 2 && !hak_load_relaxed(&is_unknown) && !hak_heard_has_listeners()) {
        size_t bytes = 0;
        for (unsigned i = 0; i < count; i++) {
            bytes += ranges[i].bytes;
        }
        got = purge_together(ranges, count);
        if (got == (long)bytes) {
            hak_add_relaxed(&hak_os_counts.purged_bytes, bytes);
            counted(&hak_os_counts.purges, true);
            return count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0);
        }
    }
    uint64_t done = 0;
    for (unsigned i = 0; i < count; i++) {
        done |= (uint64_t)hak_os_purge(ranges[i].start, ranges[i].bytes) << i;
    }
    if (got == -ENOSYS || got == -EBADF || got == -EPERM) {
        hak_store_relaxed(&is_unknown, true);
    }
    return done;
}

void *hak_os_remap(void *start, size_t old_bytes, size_t bytes, void *target)
{
    const int flags = target != NULL ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
    HAK_ADDRESSES_GO();
    const long got = hak_heard_mremap(start, old_bytes, bytes, flags, target);
    HAK_ADDRESSES_CAME();
    const size_t more = bytes > old_bytes ? bytes - old_bytes : 0;
    return counted(&hak_os_counts.remaps, noted(got, more)) ? (void *)got : NULL;
}

size_t hak_os_resident_bytes(void)
{
    return hak_proc_number("/proc/self/statm", " ", 0) * hak_os_page_bytes(); // "total resident …"
}

void hak_os_usage(uint64_t *processor_ns, uint64_t *faults)
{
    struct rusage usage = {.ru_minflt = 0};
    if (hak_syscall(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0, 0) != 0) {
        usage = (struct rusage){.ru_minflt = 0};
    }
    const struct timeval *user = &usage.ru_utime;
    const struct timeval *system = &usage.ru_stime;
    *processor_ns = (uint64_t)(user->tv_sec + system->tv_sec) * 1000000000U +
                    (uint64_t)(user->tv_usec + system->tv_usec) * 1000U;
    *faults = (uint64_t)usage.ru_minflt;
}

bool hak_os_grants_huge(void)
{
    char text[64]; // "always [madvise] never": the setting stands in brackets
    hak_os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    const char *setting = strchr(text, '[');
    return setting != NULL && setting[1] != 'n';
}

void hak_os_drop_page_tables(void *start, size_t bytes)
{
    HAK_UNHEEDED(hak_syscall(SYS_madvise, (long)start, (long)bytes, MADV_DONTNEED, 0, 0, 0));
}

void hak_os_want_huge(void *start, size_t bytes, bool wanted)
{
    const long advice = wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
    const long got = hak_syscall(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0);
    if (wanted) {
        counted(&hak_os_counts.huge_advices, got == 0);
    }
}

#ifndef MADV_COLLAPSE
#    define MADV_COLLAPSE 25
#endif

// The kernel refuses this for memory that asks for small pages.
bool hak_os_collapse(void *start, size_t bytes)
{
    hak_os_want_huge(start, bytes, true);
    const long got = hak_syscall(SYS_madvise, (long)start, (long)bytes, MADV_COLLAPSE, 0, 0, 0);
    if (got != 0) {
        hak_os_want_huge(start, bytes, false);
    }
    return got == 0;
}

// The kernel tells a thread's page faults only in a line of text: the eighth figure behind the thread's name, which is in
// brackets and may have spaces.
bool hak_os_thread_usage(int thread, uint64_t *processor_ns, uint64_t *faults)
{
    enum { FAULTS = 8 };
    char path[64];
    char text[512];
    *processor_ns = hak_os_processor_ns(thread);
    hak_format(path, sizeof path, "/proc/self/task/%z/stat", (size_t)thread);
    hak_os_read_file(path, text, sizeof text);
    const char *figure = strrchr(text, ')');
    for (unsigned i = 0; i < FAULTS && figure != NULL; i++) {
        figure = strchr(figure + 1, ' ');
    }
    *faults = figure != NULL ? hak_number_behind(figure, "", 0) : 0;
    return *processor_ns != 0;
}

uint64_t hak_os_random(void)
{
    uint64_t value = 0;
    long got = hak_syscall(SYS_getrandom, (long)&value, sizeof value, GRND_NONBLOCK, 0, 0, 0);
    if (got != sizeof value) {
        value = hak_os_now_ns() ^ (uint64_t)(uintptr_t)&value; // early boot
    }
    return value;
}

int hak_os_process_id(void)
{
    return (int)hak_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

// Has the kernel refused to wake a thread? Then each wait has a limit.
static _Atomic(bool) is_wake_refused;

// `bits`: the wake-ups that end the wait.
static void wait_for(_Atomic(uint32_t) *word, uint32_t expected, unsigned ms, uint32_t bits)
{
    struct timespec limit = {ms / 1000, (long)(ms % 1000) * 1000000};
    if (ms == 0) {
        limit = (struct timespec){0, 1000000};
    }
    const bool is_limited = ms != 0 || hak_load_relaxed(&is_wake_refused);
    // The limit of FUTEX_WAIT is a duration; that of FUTEX_WAIT_BITSET is a point in time.
    const bool is_for_any = bits == HAK_FUTEX_ANY || is_limited;
    const long how = (is_for_any ? HAK_FUTEX_WAIT : HAK_FUTEX_WAIT_BITSET) | HAK_FUTEX_PRIVATE;
    const long got = hak_syscall(
        SYS_futex, (long)word, how, (long)expected, is_limited ? (long)&limit : 0, 0, (long)bits);
    if (got != 0 && got != -EAGAIN && got != -EINTR && got != -ETIMEDOUT) {
        // A sandbox. Without this pause, a loop of waits would not leave the processor to the thread that it waits for.
        HAK_UNHEEDED(hak_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&limit, 0, 0, 0));
    }
}

// A thread that is not woken sleeps without a limit, so a refused wake-up is tried again.
static void wake(_Atomic(uint32_t) *word, int most, uint32_t bits)
{
    enum { TRIES = 100 };
    const long how = HAK_FUTEX_WAKE_BITSET | HAK_FUTEX_PRIVATE;
    for (unsigned i = 0; i < TRIES; i++) {
        if (!hak_syscall_failed(hak_syscall(SYS_futex, (long)word, how, most, 0, 0, (long)bits))) {
            return;
        }
        hak_store_relaxed(&is_wake_refused, true);
    }
}

void hak_os_wait(_Atomic(uint32_t) *word, uint32_t expected, unsigned ms)
{
    wait_for(word, expected, ms, HAK_FUTEX_ANY);
}

void hak_os_wake(_Atomic(uint32_t) *word)
{
    wake(word, 1, HAK_FUTEX_ANY);
}

void hak_os_wait_numbered(_Atomic(uint32_t) *word, uint32_t expected, uint32_t number)
{
    wait_for(word, expected, 0, UINT32_C(1) << number % 32);
}

void hak_os_wake_numbered(_Atomic(uint32_t) *word, uint32_t number)
{
    wake(word, INT_MAX, UINT32_C(1) << number % 32);
}

// Written before the program's main.
static bool has_barrier;

// ThreadSanitizer's, in a program that was built with it. Our constructor runs before it, when the functions that it puts in front
// of the C library's cannot be called yet.
extern void __tsan_init(void) __attribute__((weak));

// Registering for barriers is cheap while there is one thread; later it takes some 10 ms, in which the process cannot end.
bool hak_os_start(void)
{
    const long number = SYS_membarrier;
    has_barrier = hak_syscall(number, HAK_BARRIER_REGISTER_PRIVATE, 0, 0, 0, 0, 0) == 0;
    start_naming();
    if (!HAK_IS_SANITIZED && __tsan_init != NULL) {
        return false;
    }
    hak_os_find_clock();
    hak_os_find_threads();
    return true;
}

// A seccomp filter that the program has installed since may refuse the call.
bool hak_os_barrier_all(void)
{
    static struct hak_pause pause;
    if (hak_os_is_alone()) {
        return true;
    }
    if (!has_barrier || hak_pause_is_on(&pause)) {
        return false;
    }
    const bool done = hak_syscall(SYS_membarrier, HAK_BARRIER_PRIVATE, 0, 0, 0, 0, 0) == 0;
    hak_pause_note(&pause, !done);
    return done;
}

static void raise_here(int signal)
{
    const long process = hak_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long thread = hak_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    // If the call fails, the next step of hak_os_abort ends the process. The last one is an instruction, which nobody can refuse.
    HAK_UNHEEDED(hak_syscall(SYS_tgkill, process, thread, signal, 0, 0, 0));
}

// Not abort(): it takes a lock of the C library, and a dying process waits for no lock.
void hak_os_abort(void)
{
    const uint64_t nothing = 0;
    const uint64_t standard[4] = {
        0}; // the kernel's struct sigaction: the default, no flags, no mask
    HAK_UNHEEDED(
        hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&nothing, 0, sizeof nothing, 0, 0));
    raise_here(SIGABRT);
    // A handler has returned, or the signal is ignored: with the default action it ends the process, with a core.
    HAK_UNHEEDED(hak_syscall(SYS_rt_sigaction, SIGABRT, (long)standard, 0, sizeof nothing, 0, 0));
    raise_here(SIGABRT);
    raise_here(SIGKILL); // a sandbox may refuse the call before
    for (;;) {
        __builtin_trap();
    }
}
