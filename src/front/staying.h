// staying.h -- keeps a library that contains the archive mapped after dlclose.
//
// Threads   one, before any other function of ours is called.
//
// Threads that have allocated call us when they end, and blocks may be in use for as long as the process lives. So a library
// that contains the archive is never unmapped. The shared library is linked with nodelete.
#pragma once

#include "base/compiler.h"

HAK_INTERNAL void hak_staying_start(void);
