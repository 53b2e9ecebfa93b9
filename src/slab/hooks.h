// hooks.h -- the hooks of features below the caches: see cache/hooks.h.
//
// Threads   those of the caller: for a slab, the holder of its owner's lock.
#pragma once

#include "base/compiler.h"
#include "os/control_group.h"
#include "slab/arena.h"
#include "slab/descriptor.h"

// Are new slabs hardened (hak_run.is_hardened)? Then a feature checks their blocks, has a byte for each of them behind the bitmap,
// and may choose the order in which they are handed out. Without features: no, and the next hooks are not called.
HAK_INTERNAL bool hak_hook_hardens(void);
// A hardened slab was made, with all its blocks in it; it ends, and the hook sets `zeroed`; its free pages are about to be purged.
HAK_INTERNAL void hak_hook_slab_made(struct hak_run *slab);
HAK_INTERNAL void hak_hook_slab_ends(struct hak_run *slab);
HAK_INTERNAL void hak_hook_slab_purged(const struct hak_run *slab);
// Are blocks handed out in random order? Returns a seed for the draws, or 0: no. Each draw returns an index; the next free
// block at or behind it is handed out.
HAK_INTERNAL uint64_t hak_hook_slab_chance(void);
HAK_INTERNAL unsigned hak_hook_slab_draw(uint64_t *chance, unsigned blocks);
// Of the blocks of a word of the bitmap, those that the program has; `out`: those that are not in the slab.
HAK_INTERNAL uint64_t hak_hook_slab_out(const struct hak_run *slab, unsigned word, uint64_t out);

// A large block that may be sampled (sampled_blocks) ends or moves: its sample is forgotten. The caller holds no lock, a heap's,
// or the arena's.
HAK_INTERNAL void hak_hook_large_ends(struct hak_run *run);
// A large block ends that begins behind the start of its mapping.
HAK_INTERNAL void hak_hook_inset_ends(void) HAK_REQUIRES(&hak_arena.lock);
// Superslabs were mapped. False: they lack what a feature needs, and the caller gives them back. Without features: true.
HAK_INTERNAL bool hak_hook_superslabs(char *base, size_t bytes);

// Limits on memory beside option limit_hard; without features there are none. The machine's share was read. May the heap map
// `bytes`? May `bytes` of a mapping become resident? May `bytes` of a shard, beyond its credit?
HAK_INTERNAL void hak_hook_share_locked(const struct hak_share *share)
    HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_may_map_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_may_use_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes)
    HAK_REQUIRES(&shard->lock);
