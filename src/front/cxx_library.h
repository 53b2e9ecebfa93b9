// cxx_library.h -- the program's C++ library, if it has one.
//
// Threads   any. Takes the dynamic linker's locks: for slow paths only.
#pragma once

#include "base/compiler.h"

// The address of `name`: `linked`, which is a weak reference's, unless it is NULL, as in a C program. If so, the address in the C++
// library that the code at `site` was linked with, or in any other that the program has opened since; NULL: there is none.
HAK_INTERNAL const void *hak_cxx_library_symbol(const void *linked,
                                                const char *name,
                                                const void *site);
