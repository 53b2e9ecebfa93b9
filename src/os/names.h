// names.h -- whose memory a mapping is, for those who read /proc/PID/smaps
//
// Layer     os; only files of this layer include it.
// Threads   any.
// Fails     never: what the kernel does not name has no name, and one that knows no names is not asked again.
#pragma once

#include "base/compiler.h"

// `bytes` were mapped. What comes before the options are known is named when they are.
HAK_INTERNAL void hak_names_mapped(void *start, size_t bytes);
// Once, when they are.
HAK_INTERNAL void hak_names_start(void);
