// staying.h -- the archive in a library that is closed.
//
// Threads   one, before anybody else calls us.
//
// Threads that have allocated come back to us when they end, and blocks may be in use for as long as the process lives. So a
// library that has the archive in it is never unmapped, whatever is closed. The shared library says so of itself when it is
// linked.
#pragma once

#include "base/compiler.h"

HAK_INTERNAL void hak_staying_start(void);
