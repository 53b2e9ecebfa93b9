// operators.h -- the C++ operators that the others call by default.
//
// Layer     front
#ifndef HAK_FRONT_OPERATORS_H
#define HAK_FRONT_OPERATORS_H

#include <stddef.h>

#include "base/compiler.h"

// clang-format off
// Their results, names, our own names for ours, and parameters.
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

#endif
