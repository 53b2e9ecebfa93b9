// control_group.h -- the part of the machine that this process may use.
//
// Threads   one at a time: it works in static memory, because callers may have a small stack.
// Fails     never; what cannot be read does not limit.
//
// A container's limits are those of its control group and of all groups above it. The kernel
// does not refuse memory beyond them, it ends the process. So an allocator that keeps memory
// for later has to know them. Both versions of the kernel's interface are read: Documentation/admin-guide/
// cgroup-v2.rst, cgroup-v1/memory.rst, and scheduler/sched-bwc.rst for the processors.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

// A group is near its limit when it uses 7/8 of it.
enum { HAK_NEAR_PARTS = 8 };

struct hak_share {
    size_t memory_bytes; // SIZE_MAX when unknown
    size_t memory_used;  // by the group with that limit; 0 when the machine is the limit
};

// About 40 system calls for a process five groups deep, in version 2, and half as many in version 1.
HAK_INTERNAL struct hak_share hak_control_group_read_share(void);

// How many processors can be busy at the same time in the groups that hak_control_group_read_share has found, at least 1.
// About 20 system calls.
HAK_INTERNAL unsigned hak_control_group_read_processors(void);

// Of this process's group and those above it, the one that has the least room left: its limit (memory.max; beyond memory.high,
// no process is ended), and what it uses, without what the kernel would drop or swap out.
struct hak_group_use {
    size_t limit_bytes; // SIZE_MAX: none has a limit
    size_t used_bytes;  // at most limit_bytes
};
// As many system calls as hak_control_group_read_share, and a read of memory.stat for each group that is more than half full.
HAK_INTERNAL struct hak_group_use hak_control_group_read_use(void);

// Files of the group whose limit hak_control_group_read_share found last, held open (hak_os_hold_file); none if not readable.
struct hak_share_files {
    struct hak_held_file use;        // bytes that the group uses
    struct hak_held_file statistics; // what they are used for: lines "name bytes"
    struct hak_held_file stalls;     // how long tasks, its or the machine's, have waited for memory
    bool is_version_1;
};
HAK_INTERNAL struct hak_share_files hak_control_group_hold_files(void);
