// manager.h -- what a service manager says of memory, as systemd does: MEMORY_PRESSURE_WATCH and MEMORY_PRESSURE_WRITE.
//
// Layer     limits
// Owns      the file that the first variable names.
// Threads   hak_manager_start: once, before the program's main. The others in the sweeper's ticks, one at a time.
// Fails     never: what cannot be watched is said on stderr, and stalls are read as without a manager.
//
// The manager knows how much waiting its service bears, so where it names a file, that file decides when tasks wait
// for too long, and the sums of pressure.h do not. It tells once in a while as long as that lasts, a file of the
// kernel's every two seconds; so a word of it holds for a second.
#pragma once

#include "base/compiler.h"

// Look for the variables in the environment, and open the file.
HAK_INTERNAL void hak_manager_start(void);

// Is it the manager who says whether tasks wait for too long? Not in a child after fork, as the parent would hear in its place.
HAK_INTERNAL bool hak_manager_decides(void);

// Has it said so in the second before now? Only if it decides.
HAK_INTERNAL bool hak_manager_says_short(uint64_t now_ns);
