// refusal.h -- memory that the kernel refused, and why.
//
// Layer     os
// Threads   any; each finds its own refusals.
// Fails     never; what cannot be read is not named.
//
// The kernel says ENOMEM for whatever is exhausted. So its decision is made once more, in the
// kernel's own order (mm/mmap.c: do_mmap, may_expand_vm, __vm_enough_memory), from what it
// tells at that moment. It allocates nothing, and reads no file that the kernel takes long to write.
#ifndef HAK_OS_REFUSAL_H
#define HAK_OS_REFUSAL_H

#include "base/compiler.h"

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

// In place of the kernel's error: it was not asked, as it would end the process.
enum { HAK_REFUSED_BY_GROUP = -1 };

struct hak_refusal {
    int error; // 0: none
    size_t bytes;
};

// What is exhausted; the limit and what of it was in use, in bytes, or mappings.
struct hak_cause {
    enum hak_limit limit;
    uint64_t value;
    uint64_t use;
};

// The kernel refused the calling thread `bytes`.
HAK_INTERNAL void hak_refusal_note(int error, size_t bytes);
// A moment, to ask later what was refused since.
HAK_INTERNAL uint64_t hak_refusal_mark(void);
// The latest refusal of the calling thread since then.
HAK_INTERNAL struct hak_refusal hak_refusal_since(uint64_t mark);
// Will a request for so many be refused whatever is given back? It is more than a process has addresses, or than the machine
// had memory and swap space when the process began.
HAK_INTERNAL bool hak_refusal_is_final(size_t bytes);
// The limit that was exhausted. Most take calls to find out, which a sandbox may forbid: if it may look.
HAK_INTERNAL struct hak_cause hak_refusal_explain(struct hak_refusal refusal, bool may_look);

#endif
