// put.h -- blocks back into their slab: what freeing for others costs, and full magazines.
//
// Layer     slab (may include: base, os, meta)
// Threads   whoever holds the lock of the slab's owner.
// Fails     never; misuse dies with a line.
#ifndef HAK_SLAB_PUT_H
#define HAK_SLAB_PUT_H

#include "base/atomic.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/misuse.h"
#include "slab/slab.h"

// The slab of a block whose entry names the owner. A wild pointer that shares the entry leads to the same
// slab: the block's place in it tells (hak_slab_index).
HAK_INLINE struct hak_slab *hak_slab_owned(const void *block)
{
    struct hak_super *super = hak_map_super(block);
    const size_t unit = ((uintptr_t)block >> HAK_UNIT_LOG2) % HAK_SUPER_UNITS;
    return &super->slabs[super->first[unit]];
}

// Does `p` point into it?
HAK_INLINE bool hak_slab_spans(const struct hak_slab *slab, const void *p)
{
    return (uintptr_t)p - (uintptr_t)slab->base < slab->units * HAK_UNIT_BYTES;
}

// The index of `block` in a slab of the class that begins at `base`. It must be the start of one of the `fresh`
// blocks that were handed out once.
HAK_INLINE uint32_t hak_slab_index(const struct hak_class *info,
                                   const char *base,
                                   uint32_t fresh,
                                   const void *block)
{
    const size_t offset = (size_t)((const char *)block - base);
    const uint32_t index = hak_class_index(info, offset);
    if (HAK_UNLIKELY(offset != (size_t)index * info->bytes || index >= fresh)) {
        hak_slab_die_at(base, info->bytes, block);
    }
    return index;
}

// Put one block back. Dies when `block` is no block of this slab or is in it already.
HAK_INLINE void hak_slab_put(struct hak_slab *slab, void *block)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const uint32_t index = hak_slab_index(info, slab->base, slab->fresh, block);
    const uint64_t bit = UINT64_C(1) << (index % 64);
    uint64_t *word = &slab->bitmap[index / 64];
    if (HAK_UNLIKELY((*word & bit) != 0)) {
        hak_die_double_free(block, info->bytes);
    }
    *word |= bit;
    slab->summary |= UINT64_C(1) << (index / 64);
    slab->free_blocks++;
}

#endif
