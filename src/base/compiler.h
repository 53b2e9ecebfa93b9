// compiler.h -- names for every compiler extension that the library uses; and the types that all files use.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A file that defines HAK_IS_WIDE before its includes uses vectors of 32 bytes. It must not be called on processors without
// them (cpu.h). Functions in it that are not inline are marked HAK_WIDEST.
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
// The compiler may assume that x is true.
#define HAK_ASSUME(x)    ((x) ? (void)0 : __builtin_unreachable())
#define HAK_COLD         __attribute__((cold, noinline))
#define HAK_MAYBE_UNUSED __attribute__((unused))
#define HAK_NOINLINE     __attribute__((noinline))
#define HAK_MUST_USE     __attribute__((warn_unused_result)) // a cast to void does not silence gcc
#define HAK_INLINE       static inline __attribute__((always_inline)) HAK_WIDEST
#define HAK_TLS          _Thread_local __attribute__((tls_model("initial-exec")))
#define HAK_ALIGNED(n)   __attribute__((aligned(n)))

// Ignores a result that must be used, where nothing depends on it; a comment at each use says why.
#define HAK_UNHEEDED(call)                         \
    do {                                           \
        const __typeof__(call) unheeded_ = (call); \
        (void)unheeded_;                           \
    } while (0)

// The pointer p, which the compiler may assume to be aligned to n bytes.
#define HAK_ASSUME_ALIGNED(p, n) __builtin_assume_aligned((p), (n))

// Is this a build with memory tags (os/tags.h)?
#ifndef HAK_MTE
#    define HAK_MTE 0
#endif

// Two words at a time.
typedef uint64_t hak_pair __attribute__((vector_size(16)));
// As many words as one instruction handles, aligned like a pair.
typedef uint64_t hak_vector __attribute__((vector_size(HAK_VECTOR_BYTES), aligned(16)));

// Unrolls the short loop that follows, as clang does anyway.
#if defined(__clang__)
#    define HAK_IN_A_ROW
#else
#    define HAK_IN_A_ROW _Pragma("GCC unroll 16")
#endif

// In a short loop that writes or copies: keeps the compiler from calling memset or memcpy instead.
#define HAK_KEEP_LOOP() __asm__ volatile("")

// The compiler forgets what it knows about the variable. So it does not merge the code that follows with similar code
// elsewhere, nor let the variable share a register.
#define HAK_FORGET(variable) __asm__("" : "+r"(variable))

// Makes a function begin in the middle of a cache line.
#if defined(__x86_64__)
#    define HAK_MID_LINE __attribute__((aligned(HAK_CACHE_LINE), patchable_function_entry(32, 32)))
#else
#    define HAK_MID_LINE
#endif

// Two words wide: for products of two words.
__extension__ typedef unsigned __int128 hak_wide;

// Copies another function's attributes to an alias of it. A compiler without this attribute does not warn about their absence.
#if __has_attribute(copy)
#    define HAK_LIKE(function) __attribute__((copy(function)))
#else
#    define HAK_LIKE(function)
#endif

// Internal, but shared between files. -fvisibility=hidden covers only definitions; without this
// attribute every `extern` costs a load from the GOT.
#define HAK_INTERNAL __attribute__((visibility("hidden")))
#define HAK_EXPORT   __attribute__((visibility("default")))

// Names that a program may define instead of us, even when it links us statically. Then objcopy makes them weak
// (src/CMakeLists.txt); in a build without objcopy, the compiler does.
#ifdef HAK_WEAK_NAMES
#    define HAK_REPLACEABLE HAK_EXPORT __attribute__((weak))
#else
#    define HAK_REPLACEABLE HAK_EXPORT
#endif

// For constants that tools read from core dumps: puts them into the data that is read-only after
// relocation. The kernel leaves other constants out of a dump, since they are in the library's file.
#define HAK_IN_CORE __attribute__((section(".data.rel.ro")))

// 64 on every processor that we support; two lines where the processor fetches neighbouring lines
// together (Intel's spatial prefetcher, "Optimization Reference Manual" 2.5.5.4).
#define HAK_CACHE_LINE 64

// Which functions take a lock, and which need it held: clang checks each function on its own
// (-Wthread-safety). A function that it cannot follow is HAK_UNPROVEN; a comment says why.
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

// A counter with a constant rate of some hundred million a second or more; any thread may read it.
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

// Do other processors see a processor's stores in the order in which it made them?
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

// ThreadSanitizer ignores what this function reads; the reason stands at each use.
#define HAK_UNJUDGED __attribute__((no_sanitize("thread")))
