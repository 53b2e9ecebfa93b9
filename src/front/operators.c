// operators.c -- C++ operator new and delete, as C functions under their mangled names
// (Itanium C++ ABI, 5.1), so that C programs do not load a C++ library.
//
// A throwing operator new calls the new-handler until memory is found, and throws
// std::bad_alloc when there is no handler. Without a C++ library the program cannot
// catch anything, and dies with a line.
#include "hakmem/hakmem.h"

#ifndef HAK_NO_OVERRIDE

#    include <stdbool.h>
#    include <stddef.h>

#    include "base/check.h"
#    include "front/exceptions.h"

typedef void (*new_handler)(void);
extern new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));

// One try: 16 and less is every block's alignment.
static void *new_once(size_t bytes, size_t alignment)
{
    return alignment <= 16 ? hak_malloc(bytes) : hak_aligned_alloc(alignment, bytes);
}

// As long as there is a handler: it may throw, end the program, or make room.
static void *new_with_handler(size_t bytes, size_t alignment)
{
    void *block = NULL;
    while (block == NULL) {
        new_handler handler = get_new_handler != NULL ? get_new_handler() : NULL;
        if (handler == NULL) {
            break;
        }
        handler();
        block = new_once(bytes, alignment);
    }
    return block;
}

static HAK_COLD void *new_slow(size_t bytes, size_t alignment, bool may_throw)
{
    if (!may_throw) {
        return hak_catch(new_with_handler, bytes, alignment);
    }
    void *block = new_with_handler(bytes, alignment);
    if (block == NULL) {
        hak_throw_bad_alloc();
        hak_die("out of memory: operator new of %z bytes", bytes);
    }
    return block;
}

static inline void *new_block(size_t bytes, size_t alignment, bool may_throw)
{
    void *block = new_once(bytes, alignment);
    return HAK_LIKELY(block != NULL) ? block : new_slow(bytes, alignment, may_throw);
}

// name is the mangled one; std::align_val_t passes as size_t, std::nothrow_t by reference.
#    define OPERATOR_NEW(name, parameters, bytes, alignment, may_throw) \
        HAK_EXPORT void *name parameters;                               \
        void *name parameters                                           \
        {                                                               \
            return new_block((bytes), (alignment), (may_throw));        \
        }
#    define OPERATOR_DELETE(name, parameters) \
        HAK_EXPORT void name parameters;      \
        void name parameters                  \
        {                                     \
            hak_free(block);                  \
        }
#    define IGNORED __attribute__((unused))

OPERATOR_NEW(_Znwm, (size_t bytes), bytes, 1, true)
OPERATOR_NEW(_Znam, (size_t bytes), bytes, 1, true)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t bytes, IGNORED const void *tag), bytes, 1, false)
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t bytes, IGNORED const void *tag), bytes, 1, false)
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t bytes, size_t alignment), bytes, alignment, true)
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t bytes, size_t alignment), bytes, alignment, true)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t,
             (size_t bytes, size_t alignment, IGNORED const void *tag),
             bytes,
             alignment,
             false)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
             (size_t bytes, size_t alignment, IGNORED const void *tag),
             bytes,
             alignment,
             false)

OPERATOR_DELETE(_ZdlPv, (void *block))
OPERATOR_DELETE(_ZdaPv, (void *block))
OPERATOR_DELETE(_ZdlPvm, (void *block, IGNORED size_t bytes))
OPERATOR_DELETE(_ZdaPvm, (void *block, IGNORED size_t bytes))
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *block, IGNORED const void *tag))
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *block, IGNORED const void *tag))
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *block, IGNORED size_t alignment))
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *block, IGNORED size_t alignment))
OPERATOR_DELETE(_ZdlPvmSt11align_val_t,
                (void *block, IGNORED size_t bytes, IGNORED size_t alignment))
OPERATOR_DELETE(_ZdaPvmSt11align_val_t,
                (void *block, IGNORED size_t bytes, IGNORED size_t alignment))
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
                (void *block, IGNORED size_t alignment, IGNORED const void *tag))
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
                (void *block, IGNORED size_t alignment, IGNORED const void *tag))

#endif
