// pressure.h -- how near the control group is to its limit, and how long tasks wait for memory.
//
// Owns      hak_pressure.
// Threads   hak_pressure_start: once, before the program's main. The others with the arena's lock, as they
//           work in static memory.
// Fails     never; a file that cannot be read reports no pressure.
//
// The kernel counts file pages as a group's use, but reclaims the inactive ones by itself. So near the limit
// these are left out: what counts is the working set, as Kubernetes calls it.
//
// Stalls are the sums in memory.pressure (Documentation/accounting/psi.rst). A trigger to poll on would report
// no sooner: the kernel looks at an unprivileged one every two seconds, while a sum is exact whenever it
// is read.
#pragma once

#include "base/compiler.h"
#include "os/control_group.h"

struct hak_pressure {
    bool is_watched;
    struct hak_share_files files;
    size_t limit_bytes;       // of the control group; 0: none
    size_t used_bytes;        // of that, when it was last read
    size_t relieved_bytes;    // used when all was last given back; 0: not since it came near
    _Atomic(bool) is_refused; // the heap has to give all back before it grows
};
HAK_INTERNAL extern struct hak_pressure hak_pressure;

HAK_INTERNAL void hak_pressure_start(void);

// Is the working set near the limit, or would it be with `bytes` more?
HAK_INTERNAL bool hak_pressure_is_near(size_t bytes);

// For how many microseconds, since the start of the group or the machine, some task waited for memory, and for how
// many all tasks that could run did.
struct hak_stalls {
    uint64_t some_us;
    uint64_t full_us;
};
HAK_INTERNAL struct hak_stalls hak_pressure_stalls(void);
