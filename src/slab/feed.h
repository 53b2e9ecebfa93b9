// feed.h -- gives the pool a unit of the arena when the kernel has no memory for it.
//
// Threads   any.
// Fails     false when too few units are free, or the pool needs none.
//
// A slab's bitmap comes from the pool. When the kernel refuses the pool more memory, free units could serve no small request. So
// one unit goes to the pool for good; it can describe a hundred other slabs. In a hardened heap its first and last page are guards.
#pragma once

#include "base/compiler.h"

// Give the pool a unit of that shard if it lacks `bytes`, for the bitmap of `units` units, and more than `units` units are free.
HAK_INTERNAL bool hak_feed_pool(unsigned shard, unsigned units, size_t bytes);
