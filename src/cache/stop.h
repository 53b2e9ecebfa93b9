// stop.h -- the process ends: blocks are looked at for the last time.
//
// Layer     cache
// Threads   the one that ends the process, in exit.
#pragma once

#include "base/compiler.h"

// At the end of the program: put the free blocks of the calling thread, and of those that have ended,
// back into their slabs, which checks them.
HAK_INTERNAL void hak_stop_process(void);
