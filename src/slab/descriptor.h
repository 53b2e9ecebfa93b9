// descriptor.h -- what is known of a run of units: a slab, or a large block.
//
// Owns      nothing. The descriptors lie in those of the superslabs (super.h), one for each unit.
// Threads   of a slab, whoever holds the lock of its owner; of a large block, who has it.
#pragma once

#include "base/list.h"

enum hak_run_state {
    HAK_RUN_NONE,  // its units are free, or it is not the first unit of a run
    HAK_RUN_SLAB,  // blocks of a class (slab.h has what is so of these fields then)
    HAK_RUN_LARGE, // one block; the map tells whether it is in use or kept
};

struct hak_owner;

struct hak_run {
    struct hak_list link; // slab: in a list of its owner; large: in its heap's list
    char *base;           // the first block
    // slab: whose lock protects this (owner/owner.h); large: its heap's, or NULL
    _Atomic(struct hak_owner *) owner;
    union {
        uint64_t *bitmap; // slab: a bit for each block that is in it
        size_t bytes;     // large: of the block
    };
    uint64_t summary;     // slab: a bit for each word of bitmap
    uint32_t free_blocks; // slab
    // slab: index of the first block never handed out. Others read it, to see whether the heap is dense (huge_pages.c).
    _Atomic(uint16_t) fresh;
    // slab: free_blocks when its free pages were last given back; 0: since then some were taken
    uint16_t purged_blocks;
    uint16_t units;     // 0: a mapping of its own
    uint8_t size_class; // slab
    uint8_t state;      // enum hak_run_state
    // The pages were never touched since they came from the kernel, or are known to be zeros as if they had not been.
    bool zeroed : 1;
    // slab: pages behind `fresh` may be resident, as the units' last user left them
    bool has_old_pages : 1;
    // slab: no block came back since its free pages were last looked at (owner/pages.c)
    bool is_swept : 1;
    // large: it has a mapping of its own that asks for huge pages because a rule says so, whatever is in it
    bool is_ruled_huge : 1;
    union {
        bool is_hardened; // slab: a feature looks at its blocks (hooks.h)
        bool is_unkept; // large: calloc took it, or a rule says so: it is not kept when it is freed
    };
    uint16_t sampled_blocks; // live blocks of it that were sampled (profile/sample.h)
};
