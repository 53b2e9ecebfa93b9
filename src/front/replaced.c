// replaced.c -- see replaced.h.
//
// In this file, the names of the family mean what they mean in the rest of the program: its own functions, if it defines them.
// So none of the names that are called here may be defined here.
#include "front/replaced.h"

#include <stdlib.h>

#include "cache/cache.h"
#include "front/override.h"
#include "hakmem/hakmem.h"

bool hak_replaced;

#ifndef HAK_NO_OVERRIDE

#    define OPERATOR(result, name, own, parameters) extern result name parameters;
HAK_BASE_OPERATORS(OPERATOR)
#    undef OPERATOR

typedef void any_function(void);

static const struct {
    any_function *theirs;
    any_function *ours;
} functions[] = {{(any_function *)malloc, (any_function *)hak_malloc},
                 {(any_function *)free, (any_function *)hak_free},
#    define OPERATOR(result, name, own, parameters) {(any_function *)name, (any_function *)own},
                 HAK_BASE_OPERATORS(OPERATOR)
#    undef OPERATOR
};

void hak_replaced_start(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        hak_replaced |= functions[i].theirs != functions[i].ours;
    }
    if (hak_replaced) {
        hak_cache_set_operators_apart();
    }
}

void *hak_replaced_malloc(size_t bytes, size_t alignment)
{
    bytes = bytes == 0 ? 1 : bytes;
    void *block = NULL;
    if (alignment <= _Alignof(max_align_t)) {
        return malloc(bytes);
    }
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

void *hak_replaced_new(size_t bytes, size_t alignment, enum hak_form form)
{
    if (form == HAK_FORM_ARRAY_OTHER) {
        return alignment == 0 ? _Znam(bytes) : _ZnamSt11align_val_t(bytes, alignment);
    }
    return alignment == 0 ? _Znwm(bytes) : _ZnwmSt11align_val_t(bytes, alignment);
}

void hak_replaced_delete(void *block, size_t alignment, enum hak_form form)
{
    if (form == HAK_FORM_BASE) {
        free(block);
    } else if (form == HAK_FORM_ARRAY_OTHER) {
        alignment == 0 ? _ZdaPv(block) : _ZdaPvSt11align_val_t(block, alignment);
    } else {
        alignment == 0 ? _ZdlPv(block) : _ZdlPvSt11align_val_t(block, alignment);
    }
}

void hak_replaced_free(void *block)
{
    free(block);
}

// As the C library's, which calls realloc. Both calls are tail calls: HAK_SITE is the same there.
static void *array_again(void *block, size_t count, size_t bytes)
{
    size_t total;
    const bool is_too_much = __builtin_mul_overflow(count, bytes, &total);
    return is_too_much ? hak_reallocarray(block, count, bytes) : realloc(block, total);
}

HAK_ALSO(void *, reallocarray, (void *, size_t, size_t), array_again);
HAK_ALSO(void *, __libc_reallocarray, (void *, size_t, size_t), array_again);

#else

void hak_replaced_start(void)
{
}

void hak_replaced_free(void *block)
{
    hak_free(block);
}

#endif
