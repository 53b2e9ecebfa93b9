// atomic.h -- C11 atomics with the memory order in the name.
//
// Ordering is part of a protocol, so it must be visible where it is used and
// easy to grep. Every call that is not `relaxed` carries a `// pairs with:`
// comment naming the function on the other side (tools/check_atomics.py).
#pragma once

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/contention.h"

#define hak_load_relaxed(p)     atomic_load_explicit((p), memory_order_relaxed)
#define hak_load_acquire(p)     atomic_load_explicit((p), memory_order_acquire)
#define hak_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define hak_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
// Read-modify-write operations on words that several threads may write. The build `contention` counts them (base/contention.h).
#if HAK_CONTENTION
#    define HAK_WRITES(p, operation)                                                    \
        __extension__({                                                                 \
            static struct hak_write_place place_ HAK_WRITE_SECTION = {__FILE__, #p, 0}; \
            atomic_fetch_add_explicit(&place_.count, 1, memory_order_relaxed);          \
            operation;                                                                  \
        })
#else
#    define HAK_WRITES(p, operation) (operation)
#endif
#define hak_swap_acquire(p, v) \
    HAK_WRITES(p, atomic_exchange_explicit((p), (v), memory_order_acquire))
#define hak_swap_acq_rel(p, v) \
    HAK_WRITES(p, atomic_exchange_explicit((p), (v), memory_order_acq_rel))
#define hak_add_relaxed(p, v) \
    HAK_WRITES(p, atomic_fetch_add_explicit((p), (v), memory_order_relaxed))
#define hak_sub_relaxed(p, v) \
    HAK_WRITES(p, atomic_fetch_sub_explicit((p), (v), memory_order_relaxed))
#define hak_or_relaxed(p, v) HAK_WRITES(p, atomic_fetch_or_explicit((p), (v), memory_order_relaxed))
#define hak_cas_relaxed(p, old, v)                      \
    HAK_WRITES(p,                                       \
               atomic_compare_exchange_strong_explicit( \
                   (p), (old), (v), memory_order_relaxed, memory_order_relaxed))
#define hak_cas_acquire(p, old, v)                      \
    HAK_WRITES(p,                                       \
               atomic_compare_exchange_strong_explicit( \
                   (p), (old), (v), memory_order_acquire, memory_order_relaxed))
#define hak_cas_release(p, old, v)                    \
    HAK_WRITES(p,                                     \
               atomic_compare_exchange_weak_explicit( \
                   (p), (old), (v), memory_order_release, memory_order_relaxed))

// The compiler moves no memory access across it: for a store and a load whose order the processor
// keeps because of hak_os_barrier_all.
#define hak_fence_compiler() atomic_signal_fence(memory_order_seq_cst)

// A thread that sees a store behind hak_fence_stores sees those before it; loads behind hak_fence_loads see
// no older memory than those before it. For a sequence lock: plain loads and stores, where a result counts
// only if nothing changed meanwhile. ThreadSanitizer does not support fences; under it none is needed there.
#if HAK_TSAN
#    define hak_fence_stores() hak_fence_compiler()
#    define hak_fence_loads()  hak_fence_compiler()
#else
#    define hak_fence_stores() atomic_thread_fence(memory_order_release)
#    define hak_fence_loads()  atomic_thread_fence(memory_order_acquire)
#endif

// A relaxed load or store that the compiler may fold into another instruction's operand. gcc 12
// never folds C11's, which costs three more instructions in free. A volatile access of an aligned
// word is as atomic on every processor and compiler that we support. ThreadSanitizer knows only
// C11's, so these are C11's under it.
#if HAK_TSAN
#    define hak_peek(p)    hak_load_relaxed(p)
#    define hak_poke(p, v) hak_store_relaxed((p), (v))
#else
#    define hak_peek(p)    (*(const volatile HAK_NOT_ATOMIC(p) *)(const volatile void *)(p))
#    define hak_poke(p, v) ((void)(*(volatile HAK_NOT_ATOMIC(p) *)(volatile void *)(p) = (v)))
#endif
// The type of *p without _Atomic: the value of an expression has none.
#define HAK_NOT_ATOMIC(p) __typeof__(((void)0, *(p)))

// Add to a word that only one thread writes at a time and others may read meanwhile: plain loads
// and stores on every processor, but no data race.
#define hak_count(p, v) hak_store_relaxed((p), hak_load_relaxed(p) + (v))
