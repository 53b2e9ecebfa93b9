// mapping.h -- a large block in a mapping of its own.
//
// Owns      the descriptors of such mappings.
// Threads   any; each takes the arena's lock.
// Fails     NULL or false when the kernel refuses; a mapping then keeps its place and size.
#pragma once

#include "slab/arena.h"
#include "slab/descriptor.h"

// Map memory for one block, aligned to `alignment`; up to superslab size that costs nothing. `bytes` is a
// multiple of the page size. `wants_huge`: it asks for huge pages (hak_huge_pages_wanted).
HAK_INTERNAL struct hak_run *hak_mapping_make(size_t bytes, size_t alignment, bool wants_huge);
// Does its block begin behind the start of the mapping? A feature has arranged that, and takes care of it (hooks.h).
HAK_INTERNAL bool hak_mapping_is_inset(struct hak_run *run);
HAK_INTERNAL struct hak_super *hak_mapping_super(struct hak_run *mapping);
HAK_INTERNAL void hak_mapping_end(struct hak_run *mapping);
// Grow or shrink it. If need be its pages move, without a copy, and mapping->base changes.
// False: it keeps its place and size; a shrink may have purged its end.
HAK_INTERNAL bool hak_mapping_resize(struct hak_run *mapping, size_t bytes);
// Do the limits allow a mapping to grow by `more` bytes? If not, that is noted as a refusal.
HAK_INTERNAL bool hak_mapping_may_grow_locked(size_t more) HAK_REQUIRES(&hak_arena.lock);
