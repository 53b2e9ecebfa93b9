// descriptor.h -- the run descriptor: describes a run of units, a slab or a large block.
//
// Owns      nothing. The descriptors lie in those of the superslabs (super.h), one for each unit.
// Threads   slab: the holder of its owner's lock; large block: the thread that makes, resizes or frees it.
#pragma once

#include "base/list.h"

enum hak_run_state {
    HAK_RUN_NONE,  // its units are free, or it is not the first unit of a run
    HAK_RUN_SLAB,  // blocks of one class (slab.h explains the fields)
    HAK_RUN_LARGE, // one block; the map tells whether it is in use or kept
};

struct hak_owner;

struct hak_run {
    struct hak_list link; // slab: in a list of its owner; large: in its heap's list
    char *base;           // the first block
    // slab: the owner, whose lock guards it (owner/owner.h); large: its heap, or NULL
    _Atomic(struct hak_owner *) owner;
    union {
        uint64_t *bitmap; // slab: a bit for each free block in it
        size_t bytes;     // large: size of the block
    };
    uint64_t summary;     // slab: a bit for each word of bitmap
    uint32_t free_blocks; // slab
    // slab: index of the first block never handed out. Other threads read it to see whether the heap is dense (huge_pages.c).
    _Atomic(uint16_t) fresh;
    // slab: free_blocks when its free pages were last purged; 0 if blocks were taken since
    uint16_t purged_blocks;
    uint16_t units;     // 0: the block has a mapping of its own
    uint8_t size_class; // slab
    uint8_t state;      // enum hak_run_state
    // The pages are untouched since they came from the kernel, or are known to be zeros all the same.
    bool zeroed : 1;
    // slab: pages behind `fresh` may be resident, left dirty by earlier users of the units
    bool has_old_pages : 1;
    // slab: no block came back since its free pages were last looked at (owner/pages.c)
    bool is_swept : 1;
    // large: it has a mapping of its own, which asks for huge pages, dense or not, because a site rule says so
    bool is_ruled_huge : 1;
    union {
        bool is_hardened; // slab: a feature checks its blocks (hooks.h)
        bool is_unkept;   // large: not kept when freed, since calloc took it or a rule says so
    };
    uint16_t sampled_blocks; // number of its live blocks that are sampled (profile/sample.h)
};
