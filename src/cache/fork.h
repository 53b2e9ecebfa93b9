// fork.h -- what happens around fork.
//
// Threads   whoever forks.
// Fails     without memory for the C library's list of such hooks: then fork goes without us.
#pragma once

#include "base/compiler.h"

// Early: ask for fork's hooks. They run in the order of registration, before fork in the reverse. Ours
// must be the last to lock and the first to unlock, or another library's would allocate while
// everything is locked: so they are asked for by our constructor or the first allocation, whichever
// comes first, or before both (hakmem.c). Later calls do nothing.
HAK_INTERNAL void hak_fork_start(void);
// The same with glibc, in the middle of being relocated.
HAK_INTERNAL void hak_fork_start_early(void);
