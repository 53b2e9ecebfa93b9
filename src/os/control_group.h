// control_group.h -- the part of the machine that this process may use.
//
// Threads   one at a time: it works in static memory, for callers may have a small stack.
// Fails     never; what cannot be read does not limit.
//
// A container's limits are those of its control group and of all groups above it. The kernel
// does not refuse memory beyond them, it ends the process: so who keeps memory for later has to
// know them. Both versions of the kernel's interface are read: Documentation/admin-guide/
// cgroup-v2.rst, cgroup-v1/memory.rst, and scheduler/sched-bwc.rst for the processors.
#pragma once

#include "base/compiler.h"
#include "os/os.h"

// What a group uses is near to its limit from 7 parts of 8 on.
enum { HAK_NEAR_PARTS = 8 };

struct hak_share {
    size_t memory_bytes; // SIZE_MAX when nothing says
    size_t memory_used;  // by the group whose limit that is; 0 when it is the machine
};

// About 40 system calls for a process five groups deep, in version 2, and half as many in version 1.
HAK_INTERNAL struct hak_share hak_control_group_read_share(void);

// How many processors can be busy at the same time, at least 1, by the groups that hak_control_group_read_share has found.
// About 20 system calls.
HAK_INTERNAL unsigned hak_control_group_read_processors(void);

// Of the group that has the least room left, of this process's and those above it: what it may have at most
// (memory.max; memory.high ends nobody), and what it uses without what the kernel would drop or swap out.
struct hak_group_use {
    size_t limit_bytes; // SIZE_MAX: none has a limit
    size_t used_bytes;  // at most limit_bytes
};
// As many system calls, and a read of memory.stat for a group that is more than half full.
HAK_INTERNAL struct hak_group_use hak_control_group_read_use(void);

// Of the group whose limit hak_control_group_read_share found last, held open (hak_os_hold_file); none: not to be read.
struct hak_share_files {
    struct hak_held_file use;        // bytes that the group uses
    struct hak_held_file statistics; // what of: lines "name bytes"
    struct hak_held_file stalls;     // how long tasks, its or the machine's, have waited for memory
    bool is_version_1;
};
HAK_INTERNAL struct hak_share_files hak_control_group_hold_files(void);
