// override.h -- taking the C library's names.
//
// Each function of the family is defined once, under its own name hak_…, and gets the C
// library's names as aliases: one address, no jump. HAK_NO_OVERRIDE leaves them out, for
// sanitizer builds, whose runtime owns malloc.
#pragma once

#include "base/compiler.h"

#ifdef HAK_NO_OVERRIDE
#    define HAK_ALSO(result, name, parameters, own) _Static_assert(1, "no alias")
#else
#    define HAK_ALSO(result, name, parameters, own) \
        HAK_EXPORT extern result name parameters __attribute__((alias(#own), used)) HAK_LIKE(own)
#endif
