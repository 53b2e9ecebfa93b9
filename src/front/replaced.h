// replaced.h -- the functions that the program defines in place of ours.
//
// Threads   any; hak_replaced is written once, before the program's main.
//
// A program may define some of the C++ operators new and delete. The default forms of the others then call the program's, as
// the standard says ([new.delete.single], [new.delete.array]). It may also define the ten functions that the C library's manual
// lists ("Replacing malloc"): then the default operators, reallocarray and free_sized work on the program's blocks.
// In such a program the operators find an empty cache (hak_cache_operators), so they take their slow paths, which call these
// functions.
#pragma once

#include "base/compiler.h"

// clang-format off
// The C++ operators that the others call by default: their results, names, our own names for ours, and parameters.
#define HAK_BASE_OPERATORS(X) \
    X(void *, _Znwm, hak_new, (size_t)) \
    X(void *, _Znam, hak_new_array, (size_t)) \
    X(void *, _ZnwmSt11align_val_t, hak_new_aligned, (size_t, size_t)) \
    X(void *, _ZnamSt11align_val_t, hak_new_array_aligned, (size_t, size_t)) \
    X(void, _ZdlPv, hak_delete, (void *)) \
    X(void, _ZdaPv, hak_delete_array, (void *)) \
    X(void, _ZdlPvSt11align_val_t, hak_delete_aligned, (void *, size_t)) \
    X(void, _ZdaPvSt11align_val_t, hak_delete_array_aligned, (void *, size_t))
// clang-format on

#define HAK_OPERATOR(result, name, own, parameters) HAK_INTERNAL result own parameters;
HAK_BASE_OPERATORS(HAK_OPERATOR)
#undef HAK_OPERATOR

// The form of an operator, and what it calls by default.
enum hak_form {
    HAK_FORM_BASE,        // new, delete: the C library's functions
    HAK_FORM_ARRAY,       // new[], delete[]: the base form
    HAK_FORM_OTHER,       // nothrow or sized: the base form
    HAK_FORM_ARRAY_OTHER, // the array form
};

HAK_INTERNAL extern bool hak_replaced;
HAK_INTERNAL void hak_replaced_start(void);

// Call the program's functions, if it has any. An alignment of 0: a form without one. hak_replaced_malloc returns NULL without
// memory; hak_replaced_new calls another form, which may throw.
HAK_INTERNAL void *hak_replaced_malloc(size_t bytes, size_t alignment);
HAK_INTERNAL void *hak_replaced_new(size_t bytes, size_t alignment, enum hak_form form);
HAK_INTERNAL void hak_replaced_delete(void *block, size_t alignment, enum hak_form form);
HAK_INTERNAL void hak_replaced_free(void *block);
