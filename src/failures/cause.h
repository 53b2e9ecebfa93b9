// cause.h -- why the kernel refused memory.
//
// Threads   any.
// Fails     never; a limit that cannot be read is not named.
//
// The kernel returns ENOMEM whatever is exhausted. So its decision is repeated here, in the kernel's
// own order (mm/mmap.c: do_mmap, may_expand_vm, __vm_enough_memory), from what it reports at that
// moment. This allocates nothing, and reads no file that takes the kernel long to write.
#pragma once

#include "os/refusal.h"

enum hak_limit {
    HAK_LIMIT_UNKNOWN,
    HAK_LIMIT_ADDRESSES,  // more than a process has addresses
    HAK_LIMIT_AS,         // RLIMIT_AS
    HAK_LIMIT_DATA,       // RLIMIT_DATA
    HAK_LIMIT_MEMLOCK,    // RLIMIT_MEMLOCK, of a process that locks all that it maps
    HAK_LIMIT_COMMIT,     // strict overcommit: CommitLimit
    HAK_LIMIT_OVERCOMMIT, // one request of more than memory and swap
    HAK_LIMIT_MAPPINGS,   // vm.max_map_count
    HAK_LIMIT_GROUP,      // the control group's memory
    HAK_LIMIT_HARD,       // ours: option limit_hard
    HAK_LIMIT_MAP,        // ours: the address map has no place
    HAK_LIMITS,
};

// What is exhausted, its limit, and how much of it was in use, in bytes or mappings.
struct hak_cause {
    enum hak_limit limit;
    uint64_t value;
    uint64_t use;
};

// Find the limit that was exhausted. Most take system calls, which a sandbox may forbid: only if `may_look`.
HAK_INTERNAL struct hak_cause hak_cause_of(struct hak_refusal refusal, bool may_look);
