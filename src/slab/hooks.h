// hooks.h -- where features come in below the caches: cache/hooks.h says how.
//
// Threads   as who calls: for a slab, the holder of its owner's lock.
#pragma once

#include "base/compiler.h"
#include "os/control_group.h"
#include "slab/arena.h"
#include "slab/descriptor.h"

// Are slabs that are made from now on hardened (hak_run.is_hardened)? A feature looks at their blocks, has a byte for
// each behind the bitmap, and may hand them out in an order of its own. Alone: no, and those below are not called.
HAK_INTERNAL bool hak_hook_hardens(void);
// Such a slab was made, with all its blocks in; it ends: `zeroed` says whether it is zeros. Its pages are about to go.
HAK_INTERNAL void hak_hook_slab_made(struct hak_run *slab);
HAK_INTERNAL void hak_hook_slab_ends(struct hak_run *slab);
HAK_INTERNAL void hak_hook_slab_purged(const struct hak_run *slab);
// Does chance say which blocks are handed out next? A sequence to draw by, or 0: no. Then each draw is an index, from which
// on to look for the next block.
HAK_INTERNAL uint64_t hak_hook_slab_chance(void);
HAK_INTERNAL unsigned hak_hook_slab_draw(uint64_t *chance, unsigned blocks);
// Which of a word of the bitmap's blocks are with the program; `out`: those that are not in the slab.
HAK_INTERNAL uint64_t hak_hook_slab_out(const struct hak_run *slab, unsigned word, uint64_t out);

// A large block that may be noted (sampled_blocks) ends, or leaves its address: it is noted no longer. With no lock, a heap's, or
// the arena's.
HAK_INTERNAL void hak_hook_large_ends(struct hak_run *run);
// A large block whose block begins behind the start of its mapping ends.
HAK_INTERNAL void hak_hook_inset_ends(void) HAK_REQUIRES(&hak_arena.lock);
// Superslabs were mapped. False, with an effect as if they had not been: they cannot be what they have to. Alone: true.
HAK_INTERNAL bool hak_hook_superslabs(char *base, size_t bytes);

// Limits on memory, beside option limit_hard. Alone: there are none. What there is of the machine for us was read; may the
// heap map as many bytes, and may those of a mapping become resident; and those of a shard, which has not that much credit left?
HAK_INTERNAL void hak_hook_share_locked(const struct hak_share *share)
    HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_may_map_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_may_use_locked(size_t bytes) HAK_REQUIRES(&hak_arena.lock);
HAK_INTERNAL bool hak_hook_lend_locked(struct hak_shard *shard, size_t bytes)
    HAK_REQUIRES(&shard->lock);
