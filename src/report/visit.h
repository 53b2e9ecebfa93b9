// visit.h -- the walk over the live blocks (hak_visit_blocks).
//
// Threads   any.
// Fails     never.
#pragma once

#include "base/compiler.h"

// Is the calling thread in such a walk? Then it holds all locks.
HAK_INTERNAL bool hak_visit_is_own(void);
