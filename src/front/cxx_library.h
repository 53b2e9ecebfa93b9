// cxx_library.h -- the program's C++ library, if it has one.
//
// Threads   any. Takes the dynamic linker's locks: for slow ways only.
#pragma once

#include "base/compiler.h"

// The address of `name` in the one that the code at `site` was linked with, else in any, or NULL. `linked` is that of a weak
// reference, which is NULL in a C program; but one may have opened libraries since, each of which brought a C++ library along.
HAK_INTERNAL const void *hak_cxx_library_symbol(const void *linked,
                                                const char *name,
                                                const void *site);
