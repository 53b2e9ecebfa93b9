// lone.h -- a large block in a mapping of its own.
//
// Layer     slab (may include: base, os, meta)
// Owns      the descriptors of such mappings, and how many have guards.
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
// As above, to the byte, with addresses before and behind it that nobody can touch; its end lies as close to
// them as its alignment, at most that of a unit, allows. NULL also when there are as many as may be: each takes one or
// three of the kernel's mappings, and half of those are the program's.
HAK_INTERNAL struct hak_slab *hak_lone_map_guarded(size_t bytes, size_t alignment);
// Read how many those are. Once, before the program's main.
HAK_INTERNAL void hak_lone_guards_start(void);
// Let it have `bytes`, with its start where it is and the guard at the next page. Die if what it gets, or what goes, was
// written before. False, and nothing changed, when there is no room behind it.
HAK_INTERNAL bool hak_lone_resize_guarded(struct hak_slab *lone, size_t bytes);
// Keep addresses behind it, if that can be had, so that it can grow by an eighth.
HAK_INTERNAL void hak_lone_leave_room(struct hak_slab *lone);
// Is it such a one? Die if what lies between it and those addresses was written.
HAK_INTERNAL bool hak_lone_is_guarded(struct hak_slab *run);
HAK_INTERNAL void hak_lone_check_guarded(struct hak_slab *lone);
HAK_INTERNAL void hak_lone_unmap(struct hak_slab *lone);
// Grow or shrink it, moving its pages (not their content) if need be: lone->base may change.
// False: nothing changed.
HAK_INTERNAL bool hak_lone_remap(struct hak_slab *lone, size_t bytes);

#endif
