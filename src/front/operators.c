// operators.c -- C++ operator new and delete, as C functions under their mangled names
// (Itanium C++ ABI, 5.1), so that C programs do not load a C++ library.
//
// A throwing operator new calls the new-handler until memory is found, and throws
// std::bad_alloc when there is no handler. Without a C++ library the program cannot
// catch anything, and dies with a line.
//
// Besides the standard's operators there are two kinds that come from tcmalloc. LLVM passes a hint (__hot_cold_t) to new, if a
// profile of the program says how often the block will be used; we ignore it. And __size_returning_new also returns how many
// bytes may be used.
#include "hakmem/hakmem.h"

#ifndef HAK_NO_OVERRIDE

#    include "base/bits.h"
#    include "base/check.h"
#    include "cache/cache.h"
#    include "cache/fast_path.h"
#    include "cache/request.h"
#    include "front/alloc.h"
#    include "front/cxx_library.h"
#    include "front/exceptions.h"
#    include "front/replaced.h"

typedef void (*new_handler)(void);
extern new_handler linked_get_new_handler(void) __asm__("_ZSt15get_new_handlerv")
    __attribute__((weak));

static new_handler get_new_handler(const void *site)
{
    new_handler (*get)(void);
    *(const void **)&get = hak_cxx_library_symbol(
        (const void *)(uintptr_t)linked_get_new_handler, "_ZSt15get_new_handlerv", site);
    return get != NULL ? get() : NULL;
}

// One try. Every block is aligned to 16 bytes.
HAK_INLINE void *new_once(size_t bytes, size_t alignment, const void *site)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        return hak_replaced_malloc(bytes, alignment);
    }
    if (HAK_LIKELY(alignment <= 16)) {
        return hak_alloc(bytes, site);
    }
    return hak_is_power_of_two(alignment) ? hak_alloc_aligned(alignment, bytes, site) : NULL;
}

// Tries again as long as there is a handler, which may throw, end the program, or free memory. An alignment that is no power of two
// would be tried for ever: as in the C++ library, the handler does not hear of it.
static void *new_with_handler(const void *argument)
{
    const struct hak_request *request = argument;
    const bool can_help = request->alignment <= 16 || hak_is_power_of_two(request->alignment);
    void *block = NULL;
    while (block == NULL && can_help) {
        const new_handler handler = get_new_handler(request->site);
        if (handler == NULL) {
            break;
        }
        handler();
        block = new_once(request->bytes, request->alignment, request->site);
    }
    return block;
}

static HAK_COLD void *new_slow(struct hak_request request, bool may_throw)
{
    if (!may_throw) {
        return hak_exceptions_catch(new_with_handler, &request);
    }
    void *block = new_with_handler(&request);
    if (block == NULL) {
        hak_exceptions_throw_bad_alloc(request.site);
        hak_die("out of memory: operator new of %z bytes", request.bytes);
    }
    return block;
}

HAK_INLINE void *new_any(struct hak_request request, bool may_throw)
{
    void *block = new_once(request.bytes, request.alignment, request.site);
    return HAK_LIKELY(block != NULL) ? block : new_slow(request, may_throw);
}

static HAK_NOINLINE void *new_throwing(size_t bytes, size_t alignment, enum hak_form form)
{
    if (HAK_UNLIKELY(hak_replaced) && form != HAK_FORM_BASE) {
        return hak_replaced_new(bytes, alignment, form);
    }
    return new_any((struct hak_request){bytes, alignment, HAK_SITE}, true);
}

// The form that a nothrow form calls, in a program that replaces operators.
struct other_form {
    size_t bytes;
    size_t alignment;
    enum hak_form form;
};

static void *new_by_other(const void *argument)
{
    const struct other_form *other = argument;
    return hak_replaced_new(other->bytes, other->alignment, other->form);
}

static HAK_NOINLINE void *new_nothrow(size_t bytes, size_t alignment, enum hak_form form)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        return hak_exceptions_catch(new_by_other, &(struct other_form){bytes, alignment, form});
    }
    return new_any((struct hak_request){bytes, alignment, HAK_SITE}, false);
}

// Both calls are tail calls, so the return address that they see is in the program.
HAK_INLINE void *new_block(size_t bytes, size_t alignment, enum hak_form form, bool may_throw)
{
    void *block = NULL;
    if (HAK_LIKELY(bytes <= HAK_TINY_MAX && alignment <= 16)) {
        block = hak_cache_pop(hak_cache_operators, hak_size_class_of_tiny(bytes));
    }
    if (HAK_LIKELY(block != NULL)) {
        return block;
    }
    return may_throw ? new_throwing(bytes, alignment, form) : new_nothrow(bytes, alignment, form);
}

// tcmalloc's __sized_ptr_t: returned in two registers.
typedef struct {
    void *block;
    size_t bytes;
} sized_block;

// Of a block of the program's own operator, only the requested size is known.
static HAK_NOINLINE sized_block new_sized(size_t bytes, size_t alignment)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        return (sized_block){hak_replaced_new(bytes, alignment, HAK_FORM_OTHER), bytes};
    }
    void *block = new_any((struct hak_request){bytes, alignment, HAK_SITE}, true);
    return (sized_block){block, hak_usable_size(block)};
}

static HAK_NOINLINE void delete_slow(void *block, size_t alignment, enum hak_form form)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        hak_replaced_delete(block, alignment, form);
    } else {
        hak_free_slow(block, hak_cache_self);
    }
}

static HAK_NOINLINE void delete_sized_slow(void *block,
                                           size_t bytes,
                                           size_t alignment,
                                           enum hak_form form)
{
    if (HAK_UNLIKELY(hak_replaced)) {
        hak_replaced_delete(block, alignment, form);
    } else {
        hak_delete_slow(block, bytes, alignment);
    }
}

// `name` is the mangled one, `alignment` 0 for a form without one. std::align_val_t passes as size_t, std::nothrow_t by
// reference; __hot_cold_t is an enum class of uint8_t.
#    define OPERATOR_NEW(name, parameters, alignment, form, may_throw)          \
        HAK_REPLACEABLE void *name parameters;                                  \
        void *name parameters                                                   \
        {                                                                       \
            HAK_COUNT_CALL();                                                   \
            return new_block(bytes, (alignment), HAK_FORM_##form, (may_throw)); \
        }
#    define OPERATOR_NEW_SIZED(name, parameters, alignment) \
        HAK_REPLACEABLE sized_block name parameters;        \
        sized_block name parameters                         \
        {                                                   \
            HAK_COUNT_CALL();                               \
            return new_sized(bytes, (alignment));           \
        }
#    define OPERATOR_DELETE_BY(slow, name, parameters)                       \
        HAK_REPLACEABLE void name parameters;                                \
        void name parameters                                                 \
        {                                                                    \
            HAK_COUNT_CALL();                                                \
            if (HAK_UNLIKELY(!hak_cache_push(hak_cache_operators, block))) { \
                slow;                                                        \
            }                                                                \
        }
#    define OPERATOR_DELETE(name, parameters, alignment, form) \
        OPERATOR_DELETE_BY(delete_slow(block, (alignment), HAK_FORM_##form), name, parameters)
#    define OPERATOR_DELETE_SIZED(name, parameters, alignment, form) \
        OPERATOR_DELETE_BY(                                          \
            delete_sized_slow(block, bytes, (alignment), HAK_FORM_##form), name, parameters)
#    define BYTES     size_t bytes
#    define ALIGNMENT size_t alignment
#    define BLOCK     void *block
#    define NOTHROW   HAK_MAYBE_UNUSED const void *tag
#    define HINT      HAK_MAYBE_UNUSED uint8_t hint

// clang-format off
OPERATOR_NEW(_Znwm, (BYTES), 0, BASE, true)
OPERATOR_NEW(_Znam, (BYTES), 0, ARRAY, true)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (BYTES, NOTHROW), 0, OTHER, false)
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (BYTES, NOTHROW), 0, ARRAY_OTHER, false)
OPERATOR_NEW(_ZnwmSt11align_val_t, (BYTES, ALIGNMENT), alignment, BASE, true)
OPERATOR_NEW(_ZnamSt11align_val_t, (BYTES, ALIGNMENT), alignment, ARRAY, true)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (BYTES, ALIGNMENT, NOTHROW), alignment, OTHER, false)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (BYTES, ALIGNMENT, NOTHROW), alignment, ARRAY_OTHER, false)

// By default, these do the same as the forms without a hint.
OPERATOR_NEW(_Znwm12__hot_cold_t, (BYTES, HINT), 0, OTHER, true)
OPERATOR_NEW(_Znam12__hot_cold_t, (BYTES, HINT), 0, ARRAY_OTHER, true)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t12__hot_cold_t, (BYTES, NOTHROW, HINT), 0, OTHER, false)
OPERATOR_NEW(_ZnamRKSt9nothrow_t12__hot_cold_t, (BYTES, NOTHROW, HINT), 0, ARRAY_OTHER, false)
OPERATOR_NEW(_ZnwmSt11align_val_t12__hot_cold_t, (BYTES, ALIGNMENT, HINT), alignment, OTHER, true)
OPERATOR_NEW(_ZnamSt11align_val_t12__hot_cold_t, (BYTES, ALIGNMENT, HINT), alignment, ARRAY_OTHER, true)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t, (BYTES, ALIGNMENT, NOTHROW, HINT), alignment, OTHER, false)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t, (BYTES, ALIGNMENT, NOTHROW, HINT), alignment, ARRAY_OTHER, false)

OPERATOR_NEW_SIZED(__size_returning_new, (BYTES), 0)
OPERATOR_NEW_SIZED(__size_returning_new_aligned, (BYTES, ALIGNMENT), alignment)
OPERATOR_NEW_SIZED(__size_returning_new_hot_cold, (BYTES, HINT), 0)
OPERATOR_NEW_SIZED(__size_returning_new_aligned_hot_cold, (BYTES, ALIGNMENT, HINT), alignment)

OPERATOR_DELETE(_ZdlPv, (BLOCK), 0, BASE)
OPERATOR_DELETE(_ZdaPv, (BLOCK), 0, ARRAY)
OPERATOR_DELETE_SIZED(_ZdlPvm, (BLOCK, BYTES), 0, OTHER)
OPERATOR_DELETE_SIZED(_ZdaPvm, (BLOCK, BYTES), 0, ARRAY_OTHER)
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (BLOCK, NOTHROW), 0, OTHER)
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (BLOCK, NOTHROW), 0, ARRAY_OTHER)
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (BLOCK, ALIGNMENT), alignment, BASE)
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (BLOCK, ALIGNMENT), alignment, ARRAY)
OPERATOR_DELETE_SIZED(_ZdlPvmSt11align_val_t, (BLOCK, BYTES, ALIGNMENT), alignment, OTHER)
OPERATOR_DELETE_SIZED(_ZdaPvmSt11align_val_t, (BLOCK, BYTES, ALIGNMENT), alignment, ARRAY_OTHER)
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (BLOCK, ALIGNMENT, NOTHROW), alignment, OTHER)
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (BLOCK, ALIGNMENT, NOTHROW), alignment, ARRAY_OTHER)
// clang-format on

// Our own names for the base operators, which the program cannot replace.
#    define OWN_NAME(result, name, own, parameters) \
        HAK_INTERNAL extern result own parameters __attribute__((alias(#name))) HAK_LIKE(name);
HAK_BASE_OPERATORS(OWN_NAME)
#    undef OWN_NAME

#endif
