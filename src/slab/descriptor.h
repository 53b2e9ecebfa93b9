// descriptor.h -- what is known of a run of units: a slab, or a large block.
//
// Layer     slab (may include: base, os, meta)
// Owns      nothing. The descriptors lie in those of the superslabs (super.h), one for each unit.
// Threads   of a slab, whoever holds the lock of its owner; of a large block, who has it.
#ifndef HAK_SLAB_DESCRIPTOR_H
#define HAK_SLAB_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum hak_slab_state {
    HAK_SLAB_NONE,  // units are free, or this is not a run's first unit
    HAK_SLAB_SMALL, // blocks of a class
    HAK_SLAB_LARGE, // one block; the map tells whether it is in use or kept
};

// What slab.h says of a slab's invariants is about these fields.
struct hak_slab {
    struct hak_list link; // in a list of its owner; large: in its heap's list
    char *base;           // first block
    _Atomic(void *)
        owner; // the struct hak_cache whose lock protects this; large: its heap, or NULL
    union {
        uint64_t *bitmap; // small: a bit per block in the slab
        size_t bytes;     // large: of the block
    };
    uint64_t summary;     // small: a bit per word of bitmap
    uint32_t free_blocks; // small
    uint16_t fresh;       // small: index of the first block never handed out
    uint16_t
        purged_blocks; // small: free_blocks when its free pages were last given back; 0: since then some were taken
    uint16_t units;     // of the run; 0: a mapping of its own
    uint8_t size_class; // small
    uint8_t state;      // enum hak_slab_state
    // The pages were never touched since they came from the kernel, or are known to be zeros as if they had not been.
    bool zeroed : 1;
    bool
        has_old_pages : 1; // small: those behind `fresh` may be resident, as the units' last user left them
    bool
        is_swept : 1; // small: no block came back since its free pages were last looked at (cache/sweep_cache.c)
    union {
        bool is_hardened; // small: a feature looks at its blocks (hooks.h)
        bool is_unkept; // large: calloc took it, or a rule says so: it is not kept when it is freed
    };
    uint16_t sampled_blocks; // live blocks of it that were sampled (profile/sample.h)
};

#endif
