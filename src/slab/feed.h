// feed.h -- units for the pool, when the kernel has no memory for it.
//
// Threads   any.
// Fails     false when too few units are free, or the pool needs none.
//
// What describes a slab comes from the pool. Where the kernel refuses the pool more, free units would serve no small request.
// One of them then makes slabs of a hundred others: it is the pool's for good. In a hardened heap its first and last page are guards.
#pragma once

#include "base/compiler.h"

// The pool may have been refused `bytes` for what describes `units` of that shard: if so, and so many are free beside it, give it one.
HAK_INTERNAL bool hak_feed_pool(unsigned shard, unsigned units, size_t bytes);
