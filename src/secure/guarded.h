// guarded.h -- a large block between addresses that nobody can touch.
//
// Layer     secure
// Owns      how many there are.
// Threads   any; each takes the arena's lock.
// Fails     NULL or false when the kernel refuses; what was there before is still there.
//
// It lies in a mapping of its own (slab/mapping.h) and begins a unit behind its start.
#ifndef HAK_SECURE_GUARDED_H
#define HAK_SECURE_GUARDED_H

#include "slab/arena.h"

// Read how many there may be. Once, before the program's main.
HAK_INTERNAL void hak_guarded_start(void);
// A block of `bytes`, to the byte: its end lies as close to those addresses as its alignment, at most that of a unit,
// allows. NULL also when there are as many as may be: each takes one or three of the kernel's mappings, and half of those are
// the program's.
HAK_INTERNAL struct hak_slab *hak_guarded_map(size_t bytes, size_t alignment);
// Let it have `bytes`, with its start where it is and the guard at the next page. Die if what it gets, or what goes, was
// written before. False, and nothing changed, when there is no room behind it.
HAK_INTERNAL bool hak_guarded_resize(struct hak_slab *mapping, size_t bytes);
// Keep addresses behind it, if that can be had, so that it can grow by an eighth.
HAK_INTERNAL void hak_guarded_leave_room(struct hak_slab *mapping);
// Die if what lies between it and those addresses was written.
HAK_INTERNAL void hak_guarded_check(struct hak_slab *mapping);
// It ends.
HAK_INTERNAL void hak_guarded_ends(void) HAK_REQUIRES(&hak_arena.lock);

#endif
