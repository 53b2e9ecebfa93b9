// slab.h -- a slab: blocks of one size, and which of them are free.
//
// Owns      the bitmap of a slab's free blocks.
// Threads   all functions: the holder of the lock of the slab's owner.
// Fails     hak_slab_make returns NULL without memory; misuse ends the program with a message.
//
// A block is in one of three places: with the program, in some thread's magazine
// or parcel, or in its slab. The bitmap tells only the last: bit set = in the
// slab. Blocks that were never handed out have no bit set; they lie at and above
// `fresh`, untouched since the slab was made.
//
// A hardened slab starts with all its blocks in it. Behind its bitmap lies a byte for each block, for the
// feature that hardens it (hooks.h).
//
// Invariants (hak_slab_verify, in these words):
//   free_blocks == number of bits set in bitmap
//   bit w of summary is set  <=>  bitmap[w] != 0
//   no bit at or above fresh is set
// And, with the owner's lock: free_blocks > 0 or fresh < blocks <=> the slab is in one of its owner's two lists for the class.
// Otherwise it is in the owner's list of full slabs; so are the earlier slabs of a cache that became direct (cache/direct.h).
#pragma once

#include "base/compiler.h"
#include "meta/map.h"
#include "meta/size_class.h"
#include "slab/descriptor.h"
#include "slab/misuse.h"
#include "slab/runs.h"
#include "slab/super.h"

struct hak_ranges;

// The slab of a block whose map entry names the owner. A wild pointer that shares the entry leads to the
// same slab; hak_slab_index detects it.
HAK_INLINE struct hak_run *hak_slab_owned(const void *block)
{
    struct hak_super *super = hak_map_super(block);
    const size_t unit = ((uintptr_t)block >> HAK_UNIT_LOG2) % HAK_SUPER_UNITS;
    return &super->slabs[super->first[unit]];
}

// Bytes that a slab of the class takes from the pool.
HAK_INTERNAL size_t hak_slab_described_bytes(unsigned size_class);
// A new slab of `size_class` for `owner`, whose map entries carry `tag`. NULL without memory.
HAK_INTERNAL struct hak_run *hak_slab_make(struct hak_owner *owner,
                                           uint32_t tag,
                                           unsigned size_class);
// Give the slab's units back to the arena. All its blocks must be in it.
HAK_INTERNAL void hak_slab_end(struct hak_run *slab);
// Pass the slab to another owner; the caller holds both owners' locks. Rewrites its map entries; so it is called as well
// when sampled_blocks becomes 0, or is 0 no longer.
HAK_INTERNAL void hak_slab_move(struct hak_run *slab, struct hak_owner *owner, uint32_t tag);

// Take up to `count` free blocks into slots[0..], lowest addresses last, so that a
// magazine hands out the lowest first. Returns how many.
HAK_INTERNAL unsigned hak_slab_take(struct hak_run *slab, void **slots, unsigned count);
// Take one block that was never handed out, or NULL: its pages may still read as zero.
HAK_INTERNAL void *hak_slab_take_fresh(struct hak_run *slab);
// Put back at most `count` blocks: blocks[0], which lies in the slab, and those after it, up to the
// first that lies elsewhere. Returns how many. Misuse as in hak_slab_put.
HAK_INTERNAL unsigned hak_slab_put_row(struct hak_run *slab,
                                       _Atomic(void *) *blocks,
                                       unsigned count);

// A bit for each of the 64 blocks of a word of the bitmap: is it handed out? In a hardened slab:
// does the program have it?
HAK_INTERNAL uint64_t hak_slab_out(const struct hak_run *slab, unsigned word);
// Is `block` a block of this slab that is handed out?
HAK_INTERNAL bool hak_slab_is_out(const struct hak_run *slab, const void *block);
// End the program, and say why `block` is not a handed-out block of `bytes` of the slab at `base`.
HAK_INTERNAL _Noreturn HAK_COLD void hak_slab_die_at(const char *base,
                                                     size_t bytes,
                                                     const void *block);
// The same for `block`, which is not handed out from this slab.
HAK_INTERNAL _Noreturn HAK_COLD void hak_slab_die_of(const struct hak_run *slab, const void *block);
// The same for `p`, which is no live block: its slab has ended, and may be a part of another block by now, or it never was ours.
HAK_INTERNAL _Noreturn HAK_COLD void hak_slab_die_not_live(const void *p);

// The index of `block` in a slab of the class that begins at `base`. Ends the program unless it is the start of
// one of the `fresh` blocks that were ever handed out.
HAK_INLINE uint32_t hak_slab_index(const struct hak_class *info,
                                   const char *base,
                                   uint32_t fresh,
                                   const void *block)
{
    const size_t offset = (size_t)((const char *)block - base);
    const uint32_t index = hak_size_class_index(info, offset);
    if (HAK_UNLIKELY(offset != (size_t)index * info->bytes || index >= fresh)) {
        hak_slab_die_at(base, info->bytes, block);
    }
    return index;
}

// Put one block back. Ends the program if `block` is not a block of this slab or is in it already.
HAK_INLINE void hak_slab_put(struct hak_run *slab, void *block)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const uint32_t index = hak_slab_index(info, slab->base, hak_load_relaxed(&slab->fresh), block);
    const uint64_t bit = UINT64_C(1) << (index % 64);
    uint64_t *word = &slab->bitmap[index / 64];
    if (HAK_UNLIKELY((*word & bit) != 0)) {
        hak_misuse_double_free(block, info->bytes);
    }
    *word |= bit;
    slab->summary |= UINT64_C(1) << (index / 64);
    slab->free_blocks++;
}

// Are all blocks in the slab?
HAK_INLINE bool hak_slab_is_idle(const struct hak_run *slab)
{
    return slab->free_blocks == hak_load_relaxed(&slab->fresh);
}

HAK_INLINE bool hak_slab_has_blocks(const struct hak_run *slab)
{
    return slab->free_blocks > 0 ||
           hak_load_relaxed(&slab->fresh) < hak_classes[slab->size_class].blocks;
}

// Have blocks come back since the last purge, or may pages be resident that the units' earlier users left?
HAK_INLINE bool hak_slab_wants_purge(const struct hak_run *slab)
{
    return slab->free_blocks > slab->purged_blocks || slab->has_old_pages;
}

// The most ranges of free pages in a unit: every other page.
enum { HAK_SLAB_RANGES_OF_UNIT = HAK_UNIT_BYTES / 4096 / 2 };

// Add to `ranges`, which has room for them, the pages that lie wholly in free blocks and are not purged yet. The caller
// purges them before a block of the slab is taken, or else calls hak_slab_note_unpurged.
HAK_INTERNAL void hak_slab_purge(struct hak_run *slab, struct hak_ranges *ranges);
HAK_INLINE void hak_slab_note_unpurged(struct hak_run *slab)
{
    slab->purged_blocks = 0;
    slab->has_old_pages = true;
}

// Bytes that were purged in the slab since purged_blocks was last 0. Valid only while purged_blocks is not 0.
HAK_INTERNAL size_t hak_slab_purged_bytes(const struct hak_run *slab);

// Check all invariants of a slab; a debug build ends if one is broken.
HAK_INTERNAL void hak_slab_verify(const struct hak_run *slab);
