// promise.h -- what every program in tests/promises shares.
//
// A program is one promise. It exits with 0 when the promise is kept, with 1 and a line on stderr
// when it is broken, with 77 when this machine cannot tell. ht_start() comes first:
// it proves that hakmem is the allocator, as a promise that another allocator
// keeps proves nothing. HAK_TEST_ANY=1 skips the proof, to try a program
// on an allocator that keeps the same promise.
//
// Nothing here calls malloc, so a program's heap holds its own blocks only.
#ifndef HAK_TESTS_SUPPORT_PROMISE_H
#define HAK_TESTS_SUPPORT_PROMISE_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The type that getrlimit takes: an enumeration in glibc.
#ifdef __GLIBC__
typedef __rlimit_resource_t ht_resource;
#else
typedef int ht_resource;
#endif

enum { HT_BROKEN = 1, HT_SKIPPED = 77, HT_LINE_MAX = 512 };

#define HT_KIB ((size_t)1024)
#define HT_MIB ((size_t)1024 * 1024)
#define HT_GIB ((size_t)1024 * 1024 * 1024)

__attribute__((noreturn, format(printf, 3, 4))) static inline void ht_stop(int exit_code,
                                                                           const char *where,
                                                                           const char *format,
                                                                           ...)
{
    char line[HT_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2) {
        length = (int)sizeof line - 2;
    }
    line[length] = '\n';
    line[length + 1] = '\0';
    (void)!write(STDERR_FILENO, where, strlen(where));
    (void)!write(STDERR_FILENO, line, strlen(line));
#ifdef HT_ABORT_WHEN_BROKEN // a fuzzer keeps the input of a run that aborts
    if (exit_code == HT_BROKEN) {
        abort();
    }
#endif
    // _exit: an exit handler may meet the same fault again.
    _exit(exit_code);
}

#define HT_STRING(x)  #x
#define HT_LINE(x)    HT_STRING(x)
#define HT_HERE       __FILE__ ":" HT_LINE(__LINE__) ": "
#define HT_BREAK(...) ht_stop(HT_BROKEN, HT_HERE "broken: ", __VA_ARGS__)
#define HT_SKIP(...)  ht_stop(HT_SKIPPED, HT_HERE "cannot be checked here: ", __VA_ARGS__)
#define HT_CHECK(condition, ...)   \
    do {                           \
        if (!(condition)) {        \
            HT_BREAK(__VA_ARGS__); \
        }                          \
    } while (0)

// The compiler knows malloc and free: it removes pairs of them, and warns of the
// unusual calls that tests make. About a hidden value it knows nothing.
static inline void *ht_hide(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

static inline size_t ht_hide_size(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

// The offset of the first of `size` bytes that is not `fill`; `size` if all are. Emulators and sanitizers are slow byte by byte.
static inline size_t ht_first_other(const unsigned char *bytes, size_t size, unsigned char fill)
{
    if (size == 0 || (bytes[0] == fill && memcmp(bytes, bytes + 1, size - 1) == 0)) {
        return size;
    }
    size_t i = 0;
    while (i < size && bytes[i] == fill) {
        i++;
    }
    return i;
}

// Hakmem's own names, weak: with the library preloaded there is nothing to link with.
#ifndef HAKMEM_HAKMEM_H
#    ifdef __cplusplus
extern "C" {
#    endif
extern const char *hak_version(void) __attribute__((weak));
extern bool hak_owns(const void *block) __attribute__((weak));
#    ifdef __cplusplus
}
#    endif
#endif

// The file whose code answers calls of `malloc`: the library or, when it is
// linked in, the program itself.
static inline const char *ht_malloc_file(void)
{
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        return "";
    }
    return info.dli_fname;
}

static inline bool ht_is_any(void)
{
    return getenv("HAK_TEST_ANY") != NULL;
}

static inline bool ht_is_preloaded(void)
{
    return strstr(ht_malloc_file(), "libhakmem") != NULL;
}

static inline void ht_start(void)
{
    if (ht_is_any()) {
        return;
    }
    bool (*owns)(const void *);
    *(void **)(&owns) = dlsym(RTLD_DEFAULT, "hak_owns");
    if (owns == NULL) {
        owns = hak_owns;
    }
    void *block = ht_hide(malloc(48));
    if (owns != NULL) {
        HT_CHECK(owns(block), "malloc's block is not hakmem's: not measuring hakmem");
        HT_CHECK(!owns(&block), "hak_owns claims a variable on the stack");
    } else {
        // When linked in, hak_owns may have been left in the archive; but only the
        // archive puts a malloc into a program that has none and links libc.so.
        Dl_info self;
        HT_CHECK(dladdr(__extension__(void *) ht_malloc_file, &self) != 0 &&
                     strcmp(self.dli_fname, ht_malloc_file()) == 0,
                 "malloc is in '%s': not measuring hakmem",
                 ht_malloc_file());
        HT_CHECK(dlsym(RTLD_DEFAULT, "__libc_start_main") != NULL,
                 "cannot tell whose malloc it is");
    }
    free(block);
}

static inline long ht_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void ht_sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, (ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

// Fail if the child broke the promise; skip if it could not tell.
static inline void ht_wait_child(pid_t child, const char *what)
{
    int status = 0;
    HT_CHECK(child > 0, "%s: no child: errno %d", what, errno);
    while (waitpid(child, &status, 0) < 0) {
        HT_CHECK(errno == EINTR, "%s: waitpid: errno %d", what, errno);
    }
    HT_CHECK(!WIFSIGNALED(status), "%s: killed by signal %d", what, WTERMSIG(status));
    if (WEXITSTATUS(status) == HT_SKIPPED) {
        HT_SKIP("%s", what);
    }
    HT_CHECK(WEXITSTATUS(status) == 0, "%s: exit code %d", what, WEXITSTATUS(status));
}

#endif
