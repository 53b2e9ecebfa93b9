// check.h -- the two kinds of check, and what each one means.
//
//   hak_die(...)           The program did something wrong (double free, bad
//                          pointer). On in every build. One line, then abort.
//   HAK_ASSERT(cond)       We did something wrong. On in debug builds only; in
//                          release the condition is still compiled, never run.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

// Write "hakmem: ", the message and a newline to stderr with one system call and
// abort. Allocates nothing, takes no lock. Format: see base/format.h.
HAK_INTERNAL _Noreturn HAK_COLD void hak_die(const char *format, ...);
// The same when the program has been told already.
HAK_INTERNAL _Noreturn HAK_COLD void hak_end(void);
// Called by the thread that found the mistake, before SIGABRT is raised. Set before main; NULL: nothing is called.
HAK_INTERNAL void hak_before_end(void (*step)(void));

#if HAK_DEBUG
#    define HAK_STRING_(x) #x
#    define HAK_STRING(x)  HAK_STRING_(x)
#    define HAK_ASSERT(cond)                                                        \
        do {                                                                        \
            if (HAK_UNLIKELY(!(cond))) {                                            \
                hak_die("internal: " __FILE__ ":" HAK_STRING(__LINE__) ": " #cond); \
            }                                                                       \
        } while (0)
#else
#    define HAK_ASSERT(cond) ((void)sizeof(!(cond)))
#endif

// Counts, in unit tests: one more item of those that an operation looks at. What it costs with a larger heap is known by
// that, whatever the machine does besides.
#if HAK_DEBUG > 1
HAK_INTERNAL extern _Atomic(uint64_t) hak_looks;
#    define HAK_LOOK() (void)hak_add_relaxed(&hak_looks, 1)
#else
#    define HAK_LOOK() ((void)0)
#endif
