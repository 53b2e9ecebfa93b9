// check.h -- the two kinds of check, and what each means.
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
// End in the same way, when the message is written already.
HAK_INTERNAL _Noreturn HAK_COLD void hak_end(void);
// Before main: set a function that is called before SIGABRT is raised, in the thread that found the mistake; NULL: none.
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

// Unit tests count the items that an operation looks at. The count shows how its cost grows with the heap, whatever else
// the machine does.
#if HAK_DEBUG > 1
HAK_INTERNAL extern _Atomic(uint64_t) hak_looks;
#    define HAK_LOOK() (void)hak_add_relaxed(&hak_looks, 1)
#else
#    define HAK_LOOK() ((void)0)
#endif
