// fork.h -- what happens around fork.
//
// Threads   the thread that forks.
// Fails     without memory for the C library's list of fork handlers: then fork does not call ours.
#pragma once

#include "base/compiler.h"

// Register our fork handlers, early. Handlers run after fork in the order of their registration, before it in
// reverse. Ours must be the last to lock and the first to unlock, or another library's handler would allocate
// while everything is locked. So our constructor or the first allocation registers them, whichever comes first,
// or hakmem.c before both. Later calls do nothing.
HAK_INTERNAL void hak_fork_start(void);
// The same with glibc, while we are still being relocated.
HAK_INTERNAL void hak_fork_start_early(void);
