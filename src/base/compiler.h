// compiler.h -- every compiler extension the library uses, named once; and the types that all of it uses.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A file that defines HAK_IS_WIDE before it includes anything is for processors that have vectors of 32 bytes, and
// must not be called on others (cpu.h): its functions, of which those that are not inline say HAK_WIDEST, make use of them.
#if defined(HAK_IS_WIDE) && defined(__x86_64__)
#    define HAK_WIDEST       __attribute__((target("avx2")))
#    define HAK_VECTOR_BYTES 32
typedef long long hak_quad __attribute__((vector_size(32)));
#    define HAK_VECTOR_IS_ZERO(v) (__builtin_ia32_ptestz256((hak_quad)(v), (hak_quad)(v)) != 0)
#else
#    define HAK_WIDEST
#    define HAK_VECTOR_BYTES      16
#    define HAK_VECTOR_IS_ZERO(v) (((v)[0] | (v)[1]) == 0)
#endif

#define HAK_LIKELY(x)   __builtin_expect(!!(x), 1)
#define HAK_UNLIKELY(x) __builtin_expect(!!(x), 0)
// The compiler may take it for true.
#define HAK_ASSUME(x)    ((x) ? (void)0 : __builtin_unreachable())
#define HAK_COLD         __attribute__((cold, noinline))
#define HAK_MAYBE_UNUSED __attribute__((unused))
#define HAK_NOINLINE     __attribute__((noinline))
#define HAK_MUST_USE     __attribute__((warn_unused_result)) // a cast to void does not silence gcc
#define HAK_INLINE       static inline __attribute__((always_inline)) HAK_WIDEST
#define HAK_TLS          _Thread_local __attribute__((tls_model("initial-exec")))
#define HAK_ALIGNED(n)   __attribute__((aligned(n)))

// For a result that must be used, where nothing depends on it; a comment beside it says why.
#define HAK_UNHEEDED(call)                         \
    do {                                           \
        const __typeof__(call) unheeded_ = (call); \
        (void)unheeded_;                           \
    } while (0)

// The pointer, of which the compiler may take so much for granted.
#define HAK_ASSUME_ALIGNED(p, n) __builtin_assume_aligned((p), (n))

// Is this a build with memory tags (os/tags.h)?
#ifndef HAK_MTE
#    define HAK_MTE 0
#endif

// Two words at a time.
typedef uint64_t hak_pair __attribute__((vector_size(16)));
// As many as one instruction takes, aligned like two.
typedef uint64_t hak_vector __attribute__((vector_size(HAK_VECTOR_BYTES), aligned(16)));

// The short loop that follows becomes a row, as clang makes it anyway.
#if defined(__clang__)
#    define HAK_IN_A_ROW
#else
#    define HAK_IN_A_ROW _Pragma("GCC unroll 16")
#endif

// In a short loop that writes or copies: keeps it from becoming a call of memset or memcpy.
#define HAK_KEEP_LOOP() __asm__ volatile("")

// The compiler forgets what it knows of the variable: so it does not join the code behind with other code that ends alike, nor
// has it share a register.
#define HAK_FORGET(variable) __asm__("" : "+r"(variable))

// The function begins in the middle of a cache line.
#if defined(__x86_64__)
#    define HAK_MID_LINE __attribute__((aligned(HAK_CACHE_LINE), patchable_function_entry(32, 32)))
#else
#    define HAK_MID_LINE
#endif

// Twice as wide as a word: for products of two words.
__extension__ typedef unsigned __int128 hak_wide;

// The attributes of another function, for an alias of it; a compiler without this does not miss them.
#if __has_attribute(copy)
#    define HAK_LIKE(function) __attribute__((copy(function)))
#else
#    define HAK_LIKE(function)
#endif

// Internal, but shared between files. -fvisibility=hidden covers definitions
// only; without this every `extern` costs a load from the GOT.
#define HAK_INTERNAL __attribute__((visibility("hidden")))
#define HAK_EXPORT   __attribute__((visibility("default")))

// What a program may define in our place, also where we are linked into it. There objcopy makes these names weak
// (src/CMakeLists.txt); a build without it has the compiler do so.
#ifdef HAK_WEAK_NAMES
#    define HAK_REPLACEABLE HAK_EXPORT __attribute__((weak))
#else
#    define HAK_REPLACEABLE HAK_EXPORT
#endif

// For constants that tools read out of core dumps: in the data that is read-only after relocation. The
// kernel leaves other constants out, as they are in the library's file.
#define HAK_IN_CORE __attribute__((section(".data.rel.ro")))

// 64 on every processor this runs on; two lines where neighbouring lines are
// fetched together (Intel's spatial prefetcher, "Optimization Reference Manual" 2.5.5.4).
#define HAK_CACHE_LINE 64

// Who takes a lock, and who must hold it: clang checks it of each function by itself
// (-Wthread-safety). A function that it cannot follow is HAK_UNPROVEN, and says why.
#if defined(__clang__)
#    define HAK_CAPABILITY    __attribute__((capability("lock")))
#    define HAK_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#    define HAK_TRIES(...)    __attribute__((try_acquire_capability(true, __VA_ARGS__)))
#    define HAK_RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#    define HAK_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#    define HAK_ASSERTS(...)  __attribute__((assert_capability(__VA_ARGS__)))
#    define HAK_UNPROVEN      __attribute__((no_thread_safety_analysis))
#else
#    define HAK_CAPABILITY
#    define HAK_ACQUIRES(...)
#    define HAK_TRIES(...)
#    define HAK_RELEASES(...)
#    define HAK_REQUIRES(...)
#    define HAK_ASSERTS(...)
#    define HAK_UNPROVEN
#endif

// Tells the processor that this is a waiting loop.
#if defined(__x86_64__)
#    define HAK_SPIN_HINT() __builtin_ia32_pause()
#elif defined(__aarch64__)
#    define HAK_SPIN_HINT() __asm__ volatile("yield")
#else
#    define HAK_SPIN_HINT() ((void)0)
#endif

// A count that goes on at one rate, of some hundred million a second or more; read by any thread.
#if defined(__x86_64__)
#    define HAK_CYCLES() ((uint64_t)__builtin_ia32_rdtsc())
#elif defined(__aarch64__)
#    define HAK_CYCLES()                                           \
        __extension__({                                            \
            uint64_t count_;                                       \
            __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count_)); \
            count_;                                                \
        })
#endif

// Do all processors see the stores of one in the order in which it made them?
#if defined(__x86_64__)
#    define HAK_STORES_IN_ORDER 1
#else
#    define HAK_STORES_IN_ORDER 0
#endif

#if defined(__SANITIZE_THREAD__)
#    define HAK_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define HAK_TSAN 1
#    endif
#endif
#ifndef HAK_TSAN
#    define HAK_TSAN 0
#endif

// Is this a build with ThreadSanitizer or AddressSanitizer?
#if HAK_TSAN || defined(__SANITIZE_ADDRESS__)
#    define HAK_IS_SANITIZED true
#else
#    define HAK_IS_SANITIZED false
#endif

// ThreadSanitizer does not look at what this function reads; the reason stands where it is used.
#define HAK_UNJUDGED __attribute__((no_sanitize("thread")))
