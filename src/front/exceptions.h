// exceptions.h -- throwing and catching of C++ exceptions, from C.
//
// Threads   any.
#pragma once

#include "base/compiler.h"

// Throw std::bad_alloc to the code at `site`. Returns when the program has no C++ library to throw it with.
HAK_INTERNAL void hak_exceptions_throw_bad_alloc(const void *site);

// Call allocate(argument), which may throw anything. NULL when it does.
HAK_INTERNAL void *hak_exceptions_catch(void *(*allocate)(const void *argument),
                                        const void *argument);
