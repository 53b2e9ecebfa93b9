// unit.h -- what unit tests check with.
//
// A failed check names its line and ends the program. UNIT_DIES catches deaths of the allocator:
// locks that it held stay taken, so use it where none is held, or last.
#ifndef HAK_TESTS_UNIT_H
#define HAK_TESTS_UNIT_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/random.h"
#include "fake/fake.h"

#ifdef HT_ABORT_WHEN_BROKEN // a fuzzer keeps the input of a run that aborts
#    define UNIT_STOP() abort()
#else
#    define UNIT_STOP() _Exit(1)
#endif

#define UNIT_CHECK(condition)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            UNIT_STOP();                                                    \
        }                                                                   \
    } while (0)

#define UNIT_IS_ALIGNED(p, alignment) (((uintptr_t)(p) & ((alignment) - 1)) == 0)

// Both are size_t; they are printed if they differ.
#define UNIT_EQUAL(is, should)                          \
    do {                                                \
        const size_t is_ = (size_t)(is);                \
        const size_t should_ = (size_t)(should);        \
        if (is_ != should_) {                           \
            fprintf(stderr,                             \
                    "%s:%d: %s is %zu, not %s = %zu\n", \
                    __FILE__,                           \
                    __LINE__,                           \
                    #is,                                \
                    is_,                                \
                    #should,                            \
                    should_);                           \
            UNIT_STOP();                                \
        }                                               \
    } while (0)

#define UNIT_DIES(statement, text)                                                       \
    do {                                                                                 \
        jmp_buf death_;                                                                  \
        hak_fake.printed_bytes = 0;                                                      \
        hak_fake.death = &death_;                                                        \
        if (setjmp(death_) == 0) {                                                       \
            statement;                                                                   \
            fprintf(stderr, "%s:%d: %s does not die\n", __FILE__, __LINE__, #statement); \
            UNIT_STOP();                                                                 \
        }                                                                                \
        hak_fake.death = NULL;                                                           \
        if (strstr(hak_fake.printed, text) == NULL) {                                    \
            fprintf(stderr, "%s:%d: printed %s", __FILE__, __LINE__, hak_fake.printed);  \
            UNIT_STOP();                                                                 \
        }                                                                                \
    } while (0)

#endif
