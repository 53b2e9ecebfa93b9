// manager.h -- memory pressure as a service manager like systemd reports it: MEMORY_PRESSURE_WATCH and MEMORY_PRESSURE_WRITE.
//
// Owns      the file that the first variable names.
// Threads   hak_manager_start: once, before the program's main. The others in the sweeper's ticks, one at a time.
// Fails     never: if the file cannot be watched, a line on stderr says so, and stalls are read as without a manager.
//
// The manager knows how much waiting its service bears. So if it names a file, that file decides when tasks wait for
// too long, and not the sums of pressure.h. While that lasts, the file reports it again and again (a file of the
// kernel's every two seconds); a report holds for a second.
#pragma once

#include "base/compiler.h"

// Look for the variables in the environment, and open the file.
HAK_INTERNAL void hak_manager_start(void);

// Does the manager decide whether tasks wait for too long? Not in a child after fork, as the parent would get its reports.
HAK_INTERNAL bool hak_manager_decides(void);

// Has the manager reported that in the second before now? Only if it decides.
HAK_INTERNAL bool hak_manager_says_short(uint64_t now_ns);
