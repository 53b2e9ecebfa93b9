// lone.h -- a large block in a mapping of its own.
//
// Layer     slab (may include: base, os, meta)
// Owns      the descriptors of such mappings.
// Threads   any; each takes the arena's lock.
// Fails     NULL or false when the kernel refuses; what was there before is still there.
#ifndef HAK_SLAB_LONE_H
#define HAK_SLAB_LONE_H

#include <stdbool.h>
#include <stddef.h>

#include "slab/descriptor.h"

// A mapping of its own for one block, aligned to `alignment` (at most superslab size is free of
// cost). `bytes` is a multiple of the page size.
HAK_INTERNAL struct hak_slab *hak_lone_map(size_t bytes, size_t alignment);
// The same without asking for huge pages.
HAK_INTERNAL struct hak_slab *hak_lone_map_small(size_t bytes, size_t alignment);
// Does its block begin behind the start of the mapping? A feature has made it so, and looks after it (hooks.h).
HAK_INTERNAL bool hak_lone_is_inset(struct hak_slab *run);
HAK_INTERNAL struct hak_super *hak_lone_super(struct hak_slab *lone);
HAK_INTERNAL void hak_lone_unmap(struct hak_slab *lone);
// Grow or shrink it, moving its pages (not their content) if need be: lone->base may change.
// False: nothing changed.
HAK_INTERNAL bool hak_lone_remap(struct hak_slab *lone, size_t bytes);

#endif
